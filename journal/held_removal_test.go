package journal_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

func TestARemovalIsSentAgainWhileATransactionIsUnderWay(t *testing.T) {
	eachRemoval(t, func(t *testing.T, config journal.Config, remove func(context.Context, *engine.Engine, aggregate.ID) error) {
		s, db := inMemory(t, config)
		s.covered(t, user("1"), 12)
		head := db.Inject(dynamotest.Conflict(), dynamotest.On("UpdateItem"), dynamotest.Table(s.Config().Tables.Snapshot), dynamotest.Times(2))
		if s.isPacked() { // the operation that stores a snapshot or a tombstone
			head.Remove()
			head = db.Inject(dynamotest.Conflict(), dynamotest.On("PutItem", "TransactWriteItems"), dynamotest.Times(2))
		}
		// Events that time to live will remove are marked one by one.
		db.Inject(dynamotest.Conflict(), dynamotest.On("UpdateItem"), dynamotest.Table(s.Config().Tables.Journal), dynamotest.After(3), dynamotest.Times(2))

		require.NoError(t, remove(t.Context(), s.Engine, user("1")))

		assert.Equal(t, 2, head.Fired())
		db.Clock().Advance(2 * time.Hour)
		assert.Empty(t, s.numbers(t, user("1")))
	})
}

func TestARemovalThatMeetsTransactionsBeyondTheBudgetIsContended(t *testing.T) {
	t.Parallel()
	remove := map[string]func(context.Context, *engine.Engine) error{
		"truncate": func(ctx context.Context, j *engine.Engine) error {
			return j.Truncate(ctx, user("1"), 4, journal.RemoveOptions{After: time.Hour})
		},
		"delete": func(ctx context.Context, j *engine.Engine) error {
			return j.Delete(ctx, user("1"), 4, journal.RemoveOptions{After: time.Hour})
		},
	}
	for name, remove := range remove {
		for _, at := range []string{"head", "events"} {
			t.Run(name+", "+at, func(t *testing.T) {
				t.Parallel()
				s, db := inMemory(t, journal.Config{})
				s.covered(t, user("1"), 4)
				table := s.Config().Tables.Snapshot
				if at == "events" {
					table = s.Config().Tables.Journal
				}
				before := s.head(t, user("1"))
				db.Inject(dynamotest.Conflict(), dynamotest.On("UpdateItem"), dynamotest.Table(table))

				err := remove(t.Context(), s.through(t, s.client, impatient))

				require.ErrorIs(t, err, journal.ErrContended)
				require.NotErrorIs(t, err, journal.ErrConflict, "nobody has moved the head")
				assert.ErrorContains(t, err, table)
				assert.Equal(t, numbersFrom(1, 4), s.numbers(t, user("1")))
				if at == "head" {
					assert.Equal(t, before, s.head(t, user("1")))
				}

				ctx, cancel := cancellable(t)
				db.Observe(func(c dynamotest.Call) {
					if c.Operation == "UpdateItem" {
						cancel()
					}
				})
				err = remove(ctx, s.through(t, s.client, func(c *journal.Config) { c.RetryBudget = time.Hour }))
				require.ErrorIs(t, err, context.Canceled)
			})
		}
	}
}

func TestATruncationThatMeetsCommitsEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{})
	s.covered(t, user("1"), 4)
	ctx, cancel := cancellable(t)
	version := 4
	db.Observe(func(c dynamotest.Call) {
		switch {
		case c.Operation == "GetItem" && version == 4:
			version++
			s.write(t, user("1"), version, 1)
		case c.Operation == "UpdateItem":
			cancel()
		}
	})

	err := s.Truncate(ctx, user("1"), 4, journal.RemoveOptions{})

	require.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, s.head(t, user("1")).TruncatedBefore)
}

// Without time to live the events would stay forever, and a tombstone cannot be undone.
func TestEventsAreNotLeftToATimeToLiveThatIsOff(t *testing.T) {
	t.Parallel()
	for name, config := range classics() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := inMemory(t, config)
			id, table, a := user("1"), s.Config().Tables.Journal, s.Engine.Config.Attributes
			s.covered(t, id, 6)
			timeToLive := func(attribute string, on bool) {
				t.Helper()
				_, err := s.client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
					TableName: &table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &attribute, Enabled: aws.Bool(on)},
				})
				require.NoError(t, err)
				db.Clock().Advance(2 * time.Hour) // DynamoDB allows one change an hour
			}
			refused := func(truncateBefore uint64) {
				t.Helper()
				head, events := s.head(t, id), s.scan(t, table)
				for operation, err := range map[string]error{
					"truncate": s.Truncate(t.Context(), id, truncateBefore, journal.RemoveOptions{After: time.Hour}),
					"delete":   s.Delete(t.Context(), id, 6, journal.RemoveOptions{After: time.Hour}),
				} {
					var config *journal.ConfigError
					require.ErrorAs(t, err, &config, operation)
					assert.Equal(t, "RemoveOptions.After", config.Field, operation)
					assert.ErrorContains(t, err, table, operation)
				}
				assert.Equal(t, head, s.head(t, id), "the head")
				assert.ElementsMatch(t, events, s.scan(t, table), "the events")
			}
			timeToLive(a.TTL, false)
			refused(4)
			timeToLive("another", true)
			refused(4)

			require.NoError(t, s.Truncate(t.Context(), id, 4, journal.RemoveOptions{}), "which needs none")
			refused(3) // the head already says that they will be removed
			timeToLive("another", false)
			timeToLive(a.TTL, true)
			require.NoError(t, s.Truncate(t.Context(), id, 5, journal.RemoveOptions{After: time.Hour}))
			require.NoError(t, s.Delete(t.Context(), id, 6, journal.RemoveOptions{After: time.Hour}))
		})
	}
}

// A transaction becomes visible item by item. A deletion must also remove the items that are not
// visible yet.
func TestADeletionRemovesWhatATransactionIsStillWriting(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		for what, size := range map[string]int{"events": 300 << 10, "snapshots": 10} {
			t.Run(string(layout)+", "+what, func(t *testing.T) {
				t.Parallel()
				met := 0
				for range 15 {
					met += deleteAmidACommit(t, layout, size)
				}
				assert.Positive(t, met, "some commits show the version first")
			})
		}
	}
}

// deleteAmidACommit deletes an aggregate as soon as the version after a commit is visible. It
// reports how often the whole commit was not visible yet.
func deleteAmidACommit(t *testing.T, layout journal.Layout, size int) (met int) {
	t.Helper()
	s, db := inMemory(t, journal.Config{Layout: layout})
	id, deleted := user("1"), make(chan error, 1)
	s.write(t, id, 1, 2)
	hasty := s.through(t, s.client, impatient)
	remove := func() { deleted <- s.Delete(t.Context(), id, 5, journal.RemoveOptions{}) }
	db.Inject(dynamotest.Tear(func(ctx context.Context) {
		if head, err := hasty.Head(t.Context(), id); err == nil && head.Version == 5 && met == 0 {
			met++
			go remove()
			// The deletion does not wait for the whole commit.
			dynamotest.For(20 * time.Millisecond)(ctx)
		}
	}))
	c := storage.Commit{
		Aggregate: id, Expected: 2, Proven: true, Events: events(3, 3), Snapshot: &journal.Snapshot{Number: 5, Payload: []byte("state")},
		Redundancy: &storage.Redundancy{Listed: []uint64{}, Keep: 3},
	}
	for i := range c.Events {
		c.Events[i].Payload = bytes.Repeat([]byte("x"), size)
	}
	mustAppend(t, s, c)
	if met == 0 {
		go remove()
	}
	require.NoError(t, <-deleted)

	assert.Equal(t, 1, len(s.scan(t, s.Config().Tables.Snapshot)), "the tombstone alone is left") //nolint:testifylint // a short message
	for _, it := range s.scan(t, s.Config().Tables.Journal) {
		for _, value := range it {
			if payload, is := value.(*types.AttributeValueMemberB); is {
				assert.NotContains(t, string(payload.Value[:min(len(payload.Value), 100)]), "xxx", "events are left")
			}
		}
	}
	return met
}
