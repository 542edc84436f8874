package journal_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

func (s store) requireKnown(t *testing.T, id aggregate.ID, commandID string) {
	t.Helper()
	_, known, err := s.Command(t.Context(), id, commandID)
	require.NoError(t, err)
	assert.True(t, known, commandID)
}

// A command without events does not change the version, so another writer's list of commands at
// that version lacks it.
func TestPackedACommandWithoutEventsTakesEffectOnce(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 1)
	found, err := s.Load(t.Context(), user("ada"), func(journal.Head, error) uint64 { return 0 }, func(*journal.Record) error { return nil })
	require.NoError(t, err)
	mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Expected: 1, CommandID: "x"})
	// The writer has loaded before: another command, and then x.
	receipt := mustAppend(t, s, storage.Commit{
		Aggregate: user("ada"), Expected: 1, Proven: true, Events: events(2, 1), CommandID: "y", Commands: found.Commands,
	})
	_, err = s.Append(t.Context(), storage.Commit{
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
	mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Expected: 1, CommandID: "x"})
	mustAppend(t, s, storage.Commit{
		Aggregate: user("ada"), Expected: 1, Proven: true, Events: events(2, 1), Commands: found.Commands,
		Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("2")},
	})
	s.requireKnown(t, user("ada"), "x")
}

func TestPackedManyCommandsWithoutEventsAreAllKnown(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 1)
	const commands = 100
	for n := range commands {
		mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: fmt.Sprint("look ", n)})
	}
	check := func(expected uint64) {
		for n := range commands {
			_, err := s.Append(t.Context(), storage.Commit{
				Aggregate: user("ada"), Expected: expected, Proven: true, Events: events(1, 1), CommandID: fmt.Sprint("look ", n),
			})
			require.ErrorAs(t, err, new(*journal.DuplicateCommandError), n)
		}
	}
	check(1)
	s.commitSnapshot(t, user("ada"), 1, "two")
	check(2)
	s.write(t, user("ada"), 3, 1)
	require.NoError(t, s.Truncate(t.Context(), user("ada"), 3, journal.RemoveOptions{}))
	check(3)
	mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Expected: 3, Proven: true, CommandID: "last look"})
	require.NoError(t, s.Delete(t.Context(), user("ada"), 3, journal.RemoveOptions{}))
	s.requireKnown(t, user("ada"), "last look")
	for _, it := range s.scan(t, s.Config().Tables.Journal) {
		assert.LessOrEqual(t, len(fmt.Sprint(it["o"])), 20_000)
	}
}

// The command is neither in the writer's list nor in the placeholder, because it became a guard.
func TestPackedACommandThatBecameAGuardMeanwhileIsKnown(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 1)
	found, err := s.Load(t.Context(), user("ada"), func(journal.Head, error) uint64 { return 0 }, func(*journal.Record) error { return nil })
	require.NoError(t, err)
	for n := range 100 {
		mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: fmt.Sprint("look ", n)})
	}
	for n := range 100 {
		_, err := s.Append(t.Context(), storage.Commit{
			Aggregate: user("ada"), Expected: 1, Proven: true, Events: events(2, 1), CommandID: fmt.Sprint("look ", n), Commands: found.Commands,
		})
		require.ErrorAs(t, err, new(*journal.DuplicateCommandError), n)
	}
}

// asks is an encoding that asks for the encoding of the previous event, like one with late keys.
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
	require.NoError(t, s.Delete(t.Context(), user("ada"), 1, journal.RemoveOptions{}))
	_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("ada"), Expected: 1, Events: events(2, 1)})
	assert.ErrorAs(t, err, new(*journal.DeletedError))
}

// The reply to the command was lost. Then another writer has made the command a guard, and a commit
// with events has taken its place.
func TestPackedACommandWhoseReplyWasLostIsKnownAmongGuards(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, packed)
	s.write(t, user("ada"), 1, 1)
	after := func(context.Context) {
		for n := range 2 * 32 {
			_, err := s.Append(context.Background(), storage.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: fmt.Sprint("look ", n)})
			assert.NoError(t, err)
		}
		_, err := s.Append(context.Background(), storage.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, Events: events(2, 1)})
		assert.NoError(t, err)
	}
	db.Inject(dynamotest.PauseReply(after), dynamotest.On("PutItem"), dynamotest.Times(1))
	db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"), dynamotest.Times(1))
	mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: "mine"})
	s.requireKnown(t, user("ada"), "mine")
}

func TestPackedManyCommandsWithoutEventsAtATimeAreAllExecuted(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 1)
	var writers errgroup.Group
	for n := range 30 {
		writers.Go(func() error {
			_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: fmt.Sprint("look ", n)})
			return err
		})
	}
	require.NoError(t, writers.Wait())
}

// With the same limit for all, each of these commands would write the same guards. Each draws a
// limit of 32 to 127, and 30 more commands exceed at most a third of these. So about ten commands
// write guards, and 25 practically never do.
func TestPackedCommandsWithoutEventsAtATimeWriteFewGuards(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s, db := inMemory(t, packed)
		s.write(t, user("ada"), 1, 1)
		look := func(n int) error {
			_, err := s.Append(context.Background(), storage.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: fmt.Sprint("look ", n)})
			return err
		}
		for n := range 32 {
			require.NoError(t, look(n))
		}
		db.Inject(dynamotest.Latency(time.Millisecond, 5*time.Millisecond), dynamotest.On("PutItem"))
		var guards atomic.Int64
		db.Inject(dynamotest.Latency(0, 0), dynamotest.On("PutItem"), dynamotest.Matching(func(_ string, in any) bool {
			if in.(*dynamodb.PutItemInput).ConditionExpression == nil { // a commit has a condition
				guards.Add(1)
			}
			return false
		}))
		var writers errgroup.Group
		for n := range 30 {
			writers.Go(func() error { return look(100 + n) })
		}
		require.NoError(t, writers.Wait())
		assert.Less(t, guards.Load(), int64(25*32), "30 would be 32 guards each")
	})
}

// A page of the tail may be read while the table still returns the placeholder.
func TestPackedATailReadDoesNotTakeAPlaceholderForACommit(t *testing.T) {
	t.Parallel()
	s, _ := inMemory(t, packed)
	mustAppend(t, s, storage.Commit{Aggregate: user("ada"), CommandID: "look"})
	stale := s.get(t, s.Config().Tables.Journal, s.packedKey(user("ada"), "1"))
	mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Events: []storage.Event{{Type: "x", Payload: make([]byte, 2_000)}}})
	client := &behind{Client: s.client, item: stale}
	page, err := s.through(t, client).TailShard(t.Context(), storage.TailQuery{AggregateType: user("ada").Type, Shard: s.Shard(user("ada"))})
	require.NoError(t, err)
	assert.Equal(t, 1, client.times)
	assert.Len(t, page.Records, 1)
}

// behind answers eventually consistent reads of items with items of before.
type behind struct {
	journal.Client
	item  item
	times int
}

func (b *behind) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, options ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	out, err := b.Client.BatchGetItem(ctx, in, options...)
	for table, keys := range in.RequestItems {
		if err == nil && !aws.ToBool(keys.ConsistentRead) {
			b.times++
			out.Responses[table] = []item{b.item}
		}
	}
	return out, err
}

func TestPackedEventsThatAreNotThereAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	s.write(t, user("ada"), 1, 5)
	mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Expected: 5, CommandID: "look"})
	s.write(t, user("bob"), 1, 5)
	require.NoError(t, s.Delete(t.Context(), user("bob"), 5, journal.RemoveOptions{}))
	beyond := func(id aggregate.ID) (last error) {
		for _, err := range s.Engine.Events(t.Context(), id, 6, 6) {
			last = err
		}
		return last
	}
	require.ErrorAs(t, beyond(user("ada")), new(*journal.CorruptItemError))
	require.ErrorAs(t, beyond(user("bob")), new(*journal.DeletedError))
}

// The retry budget, not the caller's deadline, ends the search for the command. So the error is not
// a DeadlineExceeded.
func TestPackedAConflictThatCannotBeExplainedInTimeIsAnOutage(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s, db := inMemory(t, packed)
		s.write(t, user("ada"), 1, 1)
		s.write(t, user("ada"), 2, 1)
		db.Inject(dynamotest.Pause(func(ctx context.Context) { <-ctx.Done() }), dynamotest.On("Query"))
		_, err := s.Append(t.Context(), storage.Commit{
			Aggregate: user("ada"), Expected: 1, Proven: true, Events: events(2, 1), CommandID: "x", Commands: &storage.Commands{Version: 1},
		})
		require.ErrorIs(t, err, journal.ErrUnavailable)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "nothing written")
	})
}

// Only the guard shows whether the first attempt was written, and it cannot be read.
func TestPackedACommandWhoseGuardCannotBeReadMayBeWritten(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, packed)
	s.write(t, user("ada"), 1, 1)
	db.Inject(dynamotest.PauseReply(func(context.Context) {
		for n := range 3 * 128 {
			_, err := s.Append(context.Background(), storage.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: fmt.Sprint("look ", n)})
			assert.NoError(t, err)
		}
		db.Inject(dynamotest.Throttle(), dynamotest.On("GetItem"))
	}), dynamotest.On("PutItem"), dynamotest.Times(1))
	db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"), dynamotest.Times(1))
	_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("ada"), Expected: 1, Proven: true, CommandID: "mine"})
	require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
}
