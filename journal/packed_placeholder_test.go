package journal_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// A command without events does not move the version, so what another writer knows of the commands
// at that version lacks it.
func TestPackedACommandWithoutEventsTakesEffectOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 1)
	found, err := s.Load(t.Context(), user("ada"), func(journal.Head, error) uint64 { return 0 }, func(*journal.Record) error { return nil })
	require.NoError(t, err)
	_, err = s.Append(t.Context(), eventlog.Commit{Aggregate: user("ada"), Expected: 1, CommandID: "x"})
	require.NoError(t, err)
	// Another command of the writer that has loaded before, and then x.
	receipt, err := s.Append(t.Context(), eventlog.Commit{
		Aggregate: user("ada"), Expected: 1, Proven: true, Events: events(2, 1), CommandID: "y", Commands: found.Commands,
	})
	require.NoError(t, err)
	_, err = s.Append(t.Context(), eventlog.Commit{
		Aggregate: user("ada"), Expected: 2, Proven: true, Events: events(3, 1), CommandID: "x", Commands: receipt.Commands,
	})
	assert.ErrorAs(t, err, new(*journal.DuplicateCommandError))
}

func TestPackedASnapshotKeepsCommandsWithoutEvents(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 1)
	found, err := s.Load(t.Context(), user("ada"), func(journal.Head, error) uint64 { return 0 }, func(*journal.Record) error { return nil })
	require.NoError(t, err)
	_, err = s.Append(t.Context(), eventlog.Commit{Aggregate: user("ada"), Expected: 1, CommandID: "x"})
	require.NoError(t, err)
	_, err = s.Append(t.Context(), eventlog.Commit{
		Aggregate: user("ada"), Expected: 1, Proven: true, Events: events(2, 1), Commands: found.Commands,
		Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("2")},
	})
	require.NoError(t, err)
	_, known, err := s.Command(t.Context(), user("ada"), "x")
	require.NoError(t, err)
	assert.True(t, known)
}

func TestPackedManyCommandsWithoutEventsAreAllKnown(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 1)
	const commands = 100
	for n := range commands {
		_, err := s.Append(t.Context(), eventlog.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: fmt.Sprint("look ", n)})
		require.NoError(t, err)
	}
	check := func(expected uint64) {
		for n := range commands {
			_, err := s.Append(t.Context(), eventlog.Commit{
				Aggregate: user("ada"), Expected: expected, Proven: true, Events: events(1, 1), CommandID: fmt.Sprint("look ", n),
			})
			require.ErrorAs(t, err, new(*journal.DuplicateCommandError), n)
		}
	}
	check(1)
	s.commitSnapshot(t, user("ada"), 1, "two")
	check(2)
	s.write(t, user("ada"), 3, 1)
	require.NoError(t, s.Truncate(t.Context(), user("ada"), 3, journal.Removal{}))
	check(3)
	_, err := s.Append(t.Context(), eventlog.Commit{Aggregate: user("ada"), Expected: 3, Proven: true, CommandID: "last look"})
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), user("ada"), 3, journal.Removal{}))
	_, known, err := s.Command(t.Context(), user("ada"), "last look")
	require.NoError(t, err)
	assert.True(t, known)
	for _, it := range s.scan(t, s.Config().Tables.Journal) {
		assert.LessOrEqual(t, len(fmt.Sprint(it["o"])), 20_000)
	}
}

// What a writer knows lacks the command, and so does the placeholder: it has become a guard.
func TestPackedACommandThatBecameAGuardMeanwhileIsKnown(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 1)
	found, err := s.Load(t.Context(), user("ada"), func(journal.Head, error) uint64 { return 0 }, func(*journal.Record) error { return nil })
	require.NoError(t, err)
	for n := range 100 {
		_, err := s.Append(t.Context(), eventlog.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: fmt.Sprint("look ", n)})
		require.NoError(t, err)
	}
	for n := range 100 {
		_, err := s.Append(t.Context(), eventlog.Commit{
			Aggregate: user("ada"), Expected: 1, Proven: true, Events: events(2, 1), CommandID: fmt.Sprint("look ", n), Commands: found.Commands,
		})
		require.ErrorAs(t, err, new(*journal.DuplicateCommandError), n)
	}
}

// asks is an encoding that asks how the event before was encoded, as one with late keys does.
type asks struct{}

func (asks) Name() string  { return "asks" }
func (asks) Overhead() int { return 0 }
func (asks) Encode(ctx context.Context, _ journal.Place, payload []byte) ([]byte, bool, error) {
	_, err := storage.EncodingBefore(ctx)
	return payload, true, err
}

func (asks) Decode(_ context.Context, _ journal.Place, payload []byte) ([]byte, error) {
	return payload, nil
}

func TestPackedAnEncodingAsksAboutADeletedAggregate(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{Layout: journal.Packed, Encodings: []journal.Encoding{asks{}}})
	s.write(t, user("ada"), 1, 1)
	require.NoError(t, s.Delete(t.Context(), user("ada"), 1, journal.Removal{}))
	_, err := s.Append(t.Context(), eventlog.Commit{Aggregate: user("ada"), Expected: 1, Events: events(2, 1)})
	assert.ErrorAs(t, err, new(*journal.DeletedError))
}

// Its reply was lost, others have made a guard of it, and a commit with events has its place.
func TestPackedACommandWhoseReplyWasLostIsKnownAmongGuards(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, packed)
	s.write(t, user("ada"), 1, 1)
	after := func(context.Context) {
		for n := range 2 * 32 {
			_, err := s.Append(context.Background(), eventlog.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: fmt.Sprint("look ", n)})
			assert.NoError(t, err)
		}
		_, err := s.Append(context.Background(), eventlog.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, Events: events(2, 1)})
		assert.NoError(t, err)
	}
	db.Inject(dynamotest.PauseReply(after), dynamotest.On("PutItem"), dynamotest.Times(1))
	db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"), dynamotest.Times(1))
	_, err := s.Append(t.Context(), eventlog.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: "mine"})
	require.NoError(t, err)
	_, known, err := s.Command(t.Context(), user("ada"), "mine")
	require.NoError(t, err)
	assert.True(t, known)
}

func TestPackedManyCommandsWithoutEventsAtATimeAreAllExecuted(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 1)
	var writers errgroup.Group
	for n := range 30 {
		writers.Go(func() error {
			_, err := s.Append(t.Context(), eventlog.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: fmt.Sprint("look ", n)})
			return err
		})
	}
	require.NoError(t, writers.Wait())
}
