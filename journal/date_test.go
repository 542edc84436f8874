package journal_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
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

// ticking returns a journal whose clock begins at start, and advances by a minute with each attempt
// to commit.
func ticking(t *testing.T, layout journal.Layout, retention time.Duration) (db *dynamotest.DB, j *journal.Journal, start time.Time) {
	t.Helper()
	db = dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: layout, Shards: 1}))
	start = time.Now().Truncate(time.Second).UTC()
	client := &ticker{Client: db.Client(testdb.Once)}
	j = testjournal.Open(t, client, journal.Config{CommandRetention: retention, Now: func() time.Time {
		return start.Add(time.Duration(client.ticks.Load()) * time.Minute)
	}})
	return db, j, start
}

// ticker counts the attempts to commit.
type ticker struct {
	*dynamodb.Client
	ticks atomic.Int64
}

func (c *ticker) PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	defer c.ticks.Add(1)
	return c.Client.PutItem(ctx, in, options...)
}

func (c *ticker) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	defer c.ticks.Add(1)
	return c.Client.TransactWriteItems(ctx, in, options...)
}

// commitOperations write a small commit in each layout.
var commitOperations = map[journal.Layout]string{journal.Classic: "TransactWriteItems", journal.Packed: "PutItem"}

// Groups find an event by its date. If an event that was repeated for seconds had the date of its
// first attempt, it could appear in a part of the tail that they have already read.
func TestACommitIsDatedByTheAttemptThatWritesIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault     dynamotest.Fault
		datedLast bool
	}{
		"throttled":          {dynamotest.Throttle(), true},
		"its reply was lost": {dynamotest.LoseReply(), false},
	} {
		for layout, operation := range commitOperations {
			t.Run(fmt.Sprint(layout, " ", name), func(t *testing.T) {
				t.Parallel()
				db, j, start := ticking(t, layout, 0)
				tried := db.Inject(c.fault, dynamotest.On(operation), dynamotest.Times(3))
				id := aggregate.ID{Type: "account", Value: "x"}

				receipt := mustAppend(t, j.Internal(), storage.Commit{Aggregate: id, Events: []storage.Event{
					{Type: "deposited", Payload: []byte("1")}, {Type: "deposited", Payload: []byte("2")},
				}})
				assert.Positive(t, tried.Fired())
				want := start
				if c.datedLast {
					want = start.Add(3 * time.Minute)
				}
				assert.Equal(t, want, receipt.OccurredAt)
				for r, err := range j.Events(t.Context(), id, 1, 2) {
					require.NoError(t, err)
					assert.Equal(t, want, r.OccurredAt)
					assert.Equal(t, receipt.CommitID, r.CommitID)
				}
			})
		}
	}
}

// After an attempt that may have been written, a later attempt that was throttled keeps the date.
func TestACommitThatMayBeWrittenKeepsItsDate(t *testing.T) {
	t.Parallel()
	for layout, operation := range commitOperations {
		db, j, start := ticking(t, layout, 0)
		db.Inject(dynamotest.Throttle(), dynamotest.On(operation), dynamotest.After(1), dynamotest.Times(2))
		db.Inject(dynamotest.CutConnection(), dynamotest.On(operation), dynamotest.Times(1))

		receipt, err := j.Internal().Append(t.Context(), storage.Commit{
			Aggregate: aggregate.ID{Type: "account", Value: "x"}, Events: []storage.Event{{Type: "deposited", Payload: []byte("1")}},
		})

		require.NoError(t, err, layout)
		assert.Equal(t, start, receipt.OccurredAt, layout)
	}
}

// The guard of a command is kept from the date of its commit.
func TestACommandIsRememberedFromItsLastDateOn(t *testing.T) {
	t.Parallel()
	db, j, start := ticking(t, journal.Classic, time.Hour)
	db.Inject(dynamotest.Throttle(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))

	testjournal.Append(t, j, storage.Commit{
		Aggregate: aggregate.ID{Type: "account", Value: "x"}, CommandID: "pay", Events: []storage.Event{{Type: "deposited", Payload: []byte("1")}},
	})
	out, err := db.Client().Scan(t.Context(), &dynamodb.ScanInput{
		TableName: aws.String("journal"), FilterExpression: aws.String("command_id = :c"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":c": &types.AttributeValueMemberS{Value: "pay"}},
	})
	require.NoError(t, err)
	require.Len(t, out.Items, 1)
	assert.Equal(t, &types.AttributeValueMemberN{Value: fmt.Sprint(start.Add(time.Minute+time.Hour).Unix() + 1)}, out.Items[0]["ttl"])
}

// The reads before a commit may also take long.
func TestPackedACommitIsDatedAfterItsVersionWasRead(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{Layout: journal.Packed})
	s.write(t, user("ada"), 1, 1)
	slow := db.Inject(dynamotest.Pause(func(context.Context) { db.Clock().Advance(20 * time.Second) }), dynamotest.On("Query"), dynamotest.Times(1))
	receipt := mustAppend(t, s, storage.Commit{Aggregate: user("ada"), Expected: 1, Events: events(2, 1)})
	assert.Equal(t, 1, slow.Fired())
	assert.Equal(t, db.Clock().Now().UnixMilli(), receipt.OccurredAt.UnixMilli())
}
