package journal_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// Two writers try every command until one of them knows that it was executed. The counter is in the
// caller's own table, which has no guard except the commit.
func TestInAStormCommandsAndTheirWritesAreExecutedOnce(t *testing.T) {
	t.Parallel()
	const commands, writers = 12, 4
	for seed := range testdb.Seeds(6) {
		for _, layout := range layouts {
			t.Run(fmt.Sprint(layout, " seed ", seed), func(t *testing.T) {
				t.Parallel()
				db := dynamotest.New(t, dynamotest.WithSeed(seed))
				config := ownTables(journal.Config{Layout: layout, Shards: 7})
				j := testjournal.New(t, db.Client(), config)
				s := store{Engine: j.Internal(), client: db.Client()}
				c, id := s.callersTable(t), user("1")

				calm := db.Storm(0.1)
				var all sync.WaitGroup
				for writer := range writers {
					all.Add(1)
					go func() {
						defer all.Done()
						for n := writer / 2; n < commands; n += writers / 2 {
							for done := false; !done && t.Context().Err() == nil; {
								done = s.tryCommand(t, c, fmt.Sprint("command ", n))
							}
						}
					}()
				}
				all.Wait()
				calm()

				s.requireVersion(t, id, commands)
				records, err := read(t, s.Engine, id, 1, commands)
				require.NoError(t, err)
				executed := map[string]string{}
				for i, r := range records {
					assert.EqualValues(t, i+1, r.Number)
					executed[string(r.Payload)] = r.CommitID
				}
				require.Len(t, executed, commands, "each command has one event")
				for name, commitID := range executed {
					command, ok, err := s.Command(t.Context(), id, name)
					require.NoError(t, err)
					require.True(t, ok)
					assert.Equal(t, commitID, command.CommitID)
				}
				assert.Equal(t, item{"id": text("n"), "times": number(commands)}, s.get(t, c.name, item{"id": text("n")}))
				// Any fault may have prevented a snapshot, or left a surplus one.
				if layout == journal.Packed {
					listed := s.head(t, id).Redundant
					assert.True(t, slices.IsSorted(listed), "%v", listed)
					receipt := snap(t, s.Engine, id, commands, storage.Redundancy{Listed: append([]uint64{}, listed...), Keep: 2})
					require.NoError(t, s.RemoveSnapshots(t.Context(), id, receipt.Surplus))
					s.requireSound(t, id, commands+1)
					return
				}
				head := s.head(t, id)
				assert.EqualValues(t, commands, head.Snapshot.Number)
				assert.Len(t, head.Redundant, 3, "those to keep and the one that the next commit removes")
			})
		}
	}
}

// requireSound requires that a load begins with the snapshot of the last event, and that nothing is
// corrupt.
func (s store) requireSound(t *testing.T, id aggregate.ID, version uint64) {
	t.Helper()
	l, err := s.load(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, loaded{state: string(stateAt(version).Payload), from: version, version: version}, l)
	assert.LessOrEqual(t, len(s.head(t, id).Redundant), 3, "those to keep and the one that the next commit removes")
	found, err := s.Inspect(t.Context(), id, func(*journal.Record) {})
	require.NoError(t, err)
	assert.Empty(t, found.Corrupt)
}

// tryCommand executes a command once more and reports whether it is certain that it was executed.
func (s store) tryCommand(t *testing.T, c callers, name string) bool {
	id := user("1")
	head, err := s.Head(t.Context(), id)
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return false
	}
	if head.Snapshot != nil {
		assert.LessOrEqual(t, head.Snapshot.Number, head.Version)
		assert.Equal(t, stateAt(head.Snapshot.Number), head.Snapshot)
	}
	receipt, err := s.Append(t.Context(), storage.Commit{
		Aggregate: id, Expected: head.Version, Events: []storage.Event{{Payload: []byte(name)}}, CommandID: name,
		Snapshot:   stateAt(head.Version + 1),
		Redundancy: &storage.Redundancy{Listed: append([]uint64{}, head.Redundant...), Keep: 2},
		Writes:     []types.TransactWriteItem{c.count("n")},
	})
	if err == nil {
		assert.Equal(t, head.Version+1, receipt.Version)
		// The next commit repeats failed deletions.
		_ = s.RemoveSnapshots(t.Context(), id, receipt.Surplus)
	}
	return err == nil || errors.As(err, new(*journal.DuplicateCommandError))
}
