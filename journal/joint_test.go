package journal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

func eachLayoutInMemory(t *testing.T, test func(t *testing.T, s store, db *dynamotest.DB)) {
	t.Helper()
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		s, db := inMemory(t, journal.Config{Layout: layout})
		test(t, s, db)
	})
}

func order(value string) aggregate.ID { return aggregate.ID{Type: "order", Value: value} }

// part returns a commit of n events to an aggregate, with a proven version.
func part(id aggregate.ID, expected, n int) storage.Commit {
	return storage.Commit{Aggregate: id, Expected: uint64(expected), Proven: true, Events: events(expected+1, n)}
}

func TestAJointCommitWritesAllItsPartsUnderOneID(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, db *dynamotest.DB) {
		s.write(t, user("1"), 1, 2)
		requests := 0
		db.Observe(func(dynamotest.Call) { requests++ })

		receipts, err := s.AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{part(user("1"), 2, 2), part(order("1"), 0, 3)}})

		require.NoError(t, err)
		assert.Equal(t, 1, requests)
		require.Len(t, receipts, 2)
		assert.EqualValues(t, 4, receipts[0].Version)
		assert.EqualValues(t, 3, receipts[1].Version)
		assert.Equal(t, receipts[0].CommitID, receipts[1].CommitID)
		for i, id := range []aggregate.ID{user("1"), order("1")} {
			records, err := read(t, s.Engine, id, 1, receipts[i].Version)
			require.NoError(t, err)
			assert.Equal(t, receipts[0].CommitID, records[len(records)-1].CommitID)
			assert.Equal(t, receipts[0].OccurredAt, records[len(records)-1].OccurredAt)
		}
		s.requireVersion(t, user("1"), 4)
		s.requireVersion(t, order("1"), 3)
	})
}

func TestAJointCommitIsRefusedWhereOneOfItsAggregatesHasMoved(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, _ *dynamotest.DB) {
		s.write(t, user("1"), 1, 2)
		s.write(t, user("2"), 1, 2)
		s.write(t, user("2"), 3, 1)
		checked := func(id aggregate.ID, expected int) storage.Commit { return part(id, expected, 0) }
		for name, test := range map[string]struct {
			part storage.Commit
			want error
		}{
			"one that is written to":               {part(user("2"), 2, 1), &journal.ConflictError{ID: user("2"), Expected: 2, Actual: 3}},
			"one that was read":                    {checked(user("2"), 2), &journal.ConflictError{ID: user("2"), Expected: 2, Actual: 3}},
			"one that was not there":               {checked(user("2"), 0), &journal.ConflictError{ID: user("2"), Expected: 0, Actual: 3}},
			"one that is not there and written to": {part(user("2"), 0, 1), &journal.ConflictError{ID: user("2"), Expected: 0, Actual: 3}},
		} {
			for _, parts := range [][]storage.Commit{{part(user("1"), 2, 1), test.part}, {test.part, part(user("1"), 2, 1)}} {
				_, err := s.AppendJoint(t.Context(), storage.Joint{Parts: parts, CommandID: "c"})
				require.Error(t, err, name)
				var conflict *journal.ConflictError
				require.ErrorAs(t, err, &conflict, name)
				assert.Equal(t, test.want, error(conflict), name)
				s.requireVersion(t, user("1"), 2)
			}
		}
		_, known, err := s.JointCommand(t.Context(), "c")
		require.NoError(t, err)
		assert.False(t, known)

		_, err = s.AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{part(user("1"), 2, 1), checked(user("2"), 3), checked(order("none"), 0)}})
		require.NoError(t, err)
		s.requireVersion(t, user("1"), 3)
		s.requireVersion(t, user("2"), 3)
	})
}

// In the packed layout the tombstone is after the last event, where a condition check expects the
// next commit. In the classic layout the tombstone keeps the version.
func TestAJointCommitSeesThatAnAggregateThatItOnlyReadWasDeleted(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, _ *dynamotest.DB) {
		s.write(t, user("1"), 1, 2)
		s.write(t, user("2"), 1, 3)
		require.NoError(t, s.Delete(t.Context(), user("2"), 3, journal.RemoveOptions{}))

		for name, of := range map[string]storage.Commit{"it was read before": part(user("2"), 3, 0), "it is to be written to": part(user("2"), 3, 1)} {
			_, err := s.AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{part(user("1"), 2, 1), of}})

			var deleted *journal.DeletedError
			require.ErrorAs(t, err, &deleted, name)
			assert.Equal(t, user("2"), deleted.ID, name)
			s.requireVersion(t, user("1"), 2)
		}
	})
}

// In the packed layout these commands are noted in the place of the next commit.
func TestCommandsWithoutEventsDoNotMoveAnAggregateThatWasOnlyRead(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, _ *dynamotest.DB) {
		s.write(t, user("1"), 1, 2)
		for i, id := range []aggregate.ID{user("1"), order("new")} {
			_, err := s.execute(t, id, []int{2, 0}[i], 0, "nothing")
			require.NoError(t, err)
		}

		_, err := s.AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{part(user("1"), 2, 0), part(order("new"), 0, 0), part(order("2"), 0, 1)}})
		require.NoError(t, err)

		_, err = s.AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{part(user("1"), 2, 1), part(order("new"), 0, 1)}})
		require.NoError(t, err, "nor are they in the way of its commits")
		for _, id := range []aggregate.ID{user("1"), order("new")} {
			_, known, err := s.Command(t.Context(), id, "nothing")
			require.NoError(t, err)
			assert.True(t, known, "it is kept")
		}
	})
}

func TestAJointCommandIsExecutedOnceWhateverItsAggregatesAre(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, db *dynamotest.DB) {
		receipts, err := s.AppendJoint(t.Context(), storage.Joint{
			Parts: []storage.Commit{part(user("1"), 0, 2), part(order("1"), 0, 1), part(user("9"), 0, 0)}, CommandID: "transfer",
		})
		require.NoError(t, err)

		_, err = s.AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{part(user("2"), 0, 1), part(user("3"), 0, 1)}, CommandID: "transfer"})

		var duplicate *journal.DuplicateCommandError
		require.ErrorAs(t, err, &duplicate)
		assert.Equal(t, &journal.DuplicateCommandError{CommandID: "transfer", CommitID: receipts[0].CommitID}, duplicate)
		s.requireNothingWritten(t, user("2"))
		got, known, err := s.JointCommand(t.Context(), "transfer")
		require.NoError(t, err)
		require.True(t, known)
		assert.Equal(t, storage.JointCommand{ID: "transfer", CommitID: receipts[0].CommitID, Parts: []storage.JointPart{
			{Aggregate: user("1"), First: 1, Version: 2}, {Aggregate: order("1"), First: 1, Version: 1},
		}}, got)

		_, known, err = s.Command(t.Context(), user("1"), "transfer")
		require.NoError(t, err)
		assert.False(t, known, "it is a command of no single aggregate")
		for stray, err := range s.Strays(t.Context(), "") {
			require.NoError(t, err)
			assert.Fail(t, "there is a stray", "%v", stray)
		}

		forgetful := s.through(t, s.client, func(c *journal.Config) { c.CommandRetention = time.Hour })
		_, err = forgetful.AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{part(user("2"), 0, 1)}, CommandID: "deposit"})
		require.NoError(t, err)
		db.Clock().Advance(2 * time.Hour)
		for id, want := range map[string]bool{"transfer": true, "deposit": false} {
			_, known, err = s.JointCommand(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, want, known, id)
		}
	})
}

func TestAJointCommandWithoutEventsIsRecorded(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, _ *dynamotest.DB) {
		s.write(t, user("1"), 1, 1)
		_, err := s.AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{part(user("1"), 0, 0)}, CommandID: "look"})
		require.ErrorIs(t, err, journal.ErrConflict, "what it has seen has to hold")

		_, err = s.AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{part(user("1"), 1, 0)}, CommandID: "look"})
		require.NoError(t, err)
		c, known, err := s.JointCommand(t.Context(), "look")
		require.NoError(t, err)
		assert.True(t, known)
		assert.Empty(t, c.Parts)
	})
}

func TestAJointCommitWithALostReplyIsKnownToBeWritten(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, db *dynamotest.DB) {
		s.write(t, user("1"), 1, 1)
		for i, fault := range []dynamotest.Fault{dynamotest.LoseReply(), dynamotest.CutConnection(), dynamotest.Throttle(), dynamotest.Conflict()} {
			injected := db.Inject(fault, dynamotest.On("TransactWriteItems"), dynamotest.Times(2))
			db.Clock().Advance(11 * time.Minute) // DynamoDB forgets request tokens
			n := 1 + i
			receipts, err := s.AppendJoint(t.Context(), storage.Joint{
				Parts: []storage.Commit{part(user("1"), n, 1), part(user("2"), i, 1)}, CommandID: fmt.Sprint("c", i),
			})
			require.NoError(t, err, "%v", fault)
			assert.Positive(t, injected.Fired())
			assert.EqualValues(t, n+1, receipts[0].Version)
			s.requireVersion(t, user("1"), n+1)
			s.requireVersion(t, user("2"), i+1)
		}
	})
}

func TestResolveTellsWhetherAJointCommitWasWritten(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, db *dynamotest.DB) {
		for _, commandID := range []string{"", "c"} {
			hasty := s.through(t, s.client, impatient)
			before, err := s.Version(t.Context(), user("1"))
			if err != nil {
				before = 0
			}
			for _, fault := range []dynamotest.Fault{dynamotest.LoseReply(), dynamotest.CutConnection()} {
				lost := db.Inject(fault, dynamotest.On("TransactWriteItems"))
				reads := db.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem", "Query"))
				_, err = hasty.AppendJoint(t.Context(), storage.Joint{
					Parts: []storage.Commit{part(user("9"), 0, 0), part(user("1"), int(before), 1), part(user("2"), int(before), 1)}, CommandID: commandID,
				})
				lost.Remove()
				reads.Remove()

				var unknown *journal.OutcomeUnknownError
				require.ErrorAs(t, err, &unknown)
				assert.True(t, unknown.Joint)
				assert.Equal(t, user("1"), unknown.ID)
				written, err := s.Resolve(t.Context(), unknown)
				require.NoError(t, err)
				version, err := s.Version(t.Context(), user("1"))
				assert.Equal(t, err == nil && version > before, written)
				if written {
					break
				}
			}
		}
	})
}

func TestAJointCommitBeyondTheLimitsIsRefusedBeforeAnythingIsSent(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, db *dynamotest.DB) {
		db.Observe(func(c dynamotest.Call) { assert.Fail(t, "nothing is sent", c.Operation) })
		many := make([]storage.Commit, 101)
		for i := range many {
			many[i] = part(user(fmt.Sprint(i)), 0, 1)
		}
		actions := 202
		if s.isPacked() {
			actions = 101 // events are in the item of their commit
		}
		large := storage.Joint{}
		for i := range 4 {
			p := part(user(fmt.Sprint(i)), 0, 5)
			for k := range p.Events {
				p.Events[k].Payload = make([]byte, 300<<10)
			}
			large.Parts = append(large.Parts, p)
		}
		var tooLarge *journal.TooLargeError

		_, err := s.AppendJoint(t.Context(), storage.Joint{Parts: many})
		require.ErrorAs(t, err, &tooLarge)
		assert.Equal(t, "actions", tooLarge.Unit)
		assert.Equal(t, actions, tooLarge.Size)

		_, err = s.AppendJoint(t.Context(), large)
		require.ErrorAs(t, err, &tooLarge)
		assert.Equal(t, "bytes", tooLarge.Unit)

		for name, c := range map[string]storage.Joint{
			"nothing":            {},
			"no events":          {Parts: []storage.Commit{part(user("1"), 0, 0)}},
			"an aggregate twice": {Parts: []storage.Commit{part(user("1"), 0, 1), part(user("1"), 1, 1)}},
			"a read one twice":   {Parts: []storage.Commit{part(user("1"), 0, 1), part(user("1"), 0, 0)}},
			"a check of another part's head": {Parts: []storage.Commit{part(user("1"), 0, 1), {
				Aggregate: user("2"), Events: events(1, 1), Writes: []types.TransactWriteItem{{ConditionCheck: &types.ConditionCheck{
					TableName: aws.String(s.headTable()), Key: s.headKey(user("1"), 1), ConditionExpression: aws.String("attribute_exists(x)"),
				}}},
			}}},
		} {
			_, err := s.AppendJoint(t.Context(), c)
			require.ErrorIs(t, err, journal.ErrInvalidCommit, name)
		}
		_, err = s.AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{part(aggregate.ID{Type: "user"}, 0, 1)}})
		require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
	})
}

// headTable and headKey identify the item that shows a commit the version: the head, or the place
// of the next event.
func (s store) headTable() string {
	if s.isPacked() {
		return s.Config().Tables.Journal
	}
	return s.Config().Tables.Snapshot
}

func (s store) headKey(id aggregate.ID, next int) map[string]types.AttributeValue {
	if s.isPacked() {
		return s.keyOf(id, next)
	}
	return s.keyOf(id, 0)
}

func TestSnapshotsAreStoredAfterAJointCommit(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, _ *dynamotest.DB) {
		parts := []storage.Commit{part(user("1"), 0, 2), part(order("1"), 0, 1)}
		for i := range parts {
			parts[i].Snapshot = &journal.Snapshot{Number: parts[i].Version(), Payload: fmt.Append(nil, "state ", i)}
		}
		receipts, err := s.AppendJoint(t.Context(), storage.Joint{Parts: parts})
		require.NoError(t, err)
		for i, p := range parts {
			assert.NoError(t, receipts[i].SnapshotError)
			head := mustHead(t, s, p.Aggregate)
			require.NotNil(t, head.Snapshot)
			assert.Equal(t, fmt.Sprint("state ", i), string(head.Snapshot.Payload))
		}
	})
}

func TestWatchersAreNotifiedOfAllPartsOfAJointCommit(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, _ *dynamotest.DB) {
		notified := map[aggregate.ID]uint64{}
		for _, kind := range []string{"user-account", "order"} {
			defer s.Watch(kind, func(id aggregate.ID, version uint64) { notified[id] = version })()
		}
		_, err := s.AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{part(user("1"), 0, 2), part(order("1"), 0, 1), part(order("2"), 0, 0)}})
		require.NoError(t, err)
		assert.Equal(t, map[aggregate.ID]uint64{user("1"): 2, order("1"): 1}, notified)
	})
}

// Concurrent writers move money between accounts, while replies get lost and requests arrive late.
// With whole transactions the sum never changes.
func TestJointCommitsAreWrittenWholeOrNotAtAll(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, db *dynamotest.DB) {
		for _, fault := range []dynamotest.Fault{dynamotest.LoseReply(), dynamotest.CutConnection(), dynamotest.Throttle(), dynamotest.Conflict()} {
			db.Inject(fault, dynamotest.On("TransactWriteItems"), dynamotest.Chance(0.1))
		}
		ctx := t.Context()
		done := make(chan int)
		for w := range 4 {
			go func() {
				written := 0
				for n := range 60 {
					if s.move(ctx, t, user(fmt.Sprint((w+n)%3)), user(fmt.Sprint((w+n+1)%3))) {
						written++
					}
				}
				done <- written
			}()
		}
		written := 0
		for range 4 {
			written += <-done
		}
		commits := map[string]int{}
		for n := range 3 {
			version, err := s.Version(ctx, user(fmt.Sprint(n)))
			require.NoError(t, err)
			for record, err := range s.Events(ctx, user(fmt.Sprint(n)), 1, version) {
				require.NoError(t, err)
				commits[record.CommitID]++
			}
		}
		for id, n := range commits {
			assert.Equal(t, 2, n, "commit %s", id)
		}
		assert.Len(t, commits, written)
		assert.Positive(t, written)
	})
}

// move appends an event to each of two aggregates, and reports whether it did.
func (s store) move(ctx context.Context, t *testing.T, from, to aggregate.ID) bool {
	t.Helper()
	var parts []storage.Commit
	for _, id := range []aggregate.ID{from, to} {
		version, err := s.Version(ctx, id)
		if err != nil {
			version = 0
		}
		parts = append(parts, part(id, int(version), 1))
	}
	_, err := s.AppendJoint(ctx, storage.Joint{Parts: parts})
	if err != nil {
		assert.ErrorIs(t, err, journal.ErrConflict)
	}
	return err == nil
}

func TestAJointCommitHoldsAsMuchAsATransaction(t *testing.T) {
	eachLayoutInMemory(t, func(t *testing.T, s store, _ *dynamotest.DB) {
		n := 50
		if s.isPacked() {
			n = 100
		}
		c := storage.Joint{}
		for i := range n {
			p := part(user(fmt.Sprint(i)), 0, 1)
			p.Snapshot = &journal.Snapshot{Number: 1, Payload: []byte("state")}
			// The transaction has no room for redundant snapshots.
			p.Redundancy = &storage.Redundancy{Listed: []uint64{}, Keep: 1}
			c.Parts = append(c.Parts, p)
		}
		receipts, err := s.AppendJoint(t.Context(), c)
		require.NoError(t, err)
		assert.Len(t, receipts, n)
		s.requireVersion(t, user(fmt.Sprint(n-1)), 1)
	})
}
