package subscriber_test

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// damage removes an attribute of an item, and returns a function that restores the item.
func damage(t *testing.T, client journal.Client, table string, key map[string]types.AttributeValue, attribute string) (repair func()) {
	t.Helper()
	return change(t, client, table, key, &dynamodb.UpdateItemInput{
		UpdateExpression: aws.String("REMOVE #a"), ExpressionAttributeNames: map[string]string{"#a": attribute},
	})
}

// change changes an attribute #a of an item, and returns a function that restores the item.
func change(t *testing.T, client journal.Client, table string, key map[string]types.AttributeValue, update *dynamodb.UpdateItemInput) (repair func()) {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key})
	require.NoError(t, err)
	update.TableName, update.Key, update.ConditionExpression = &table, key, aws.String("attribute_exists(#a)")
	_, err = client.UpdateItem(t.Context(), update)
	require.NoError(t, err)
	return func() {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: out.Item})
		require.NoError(t, err)
	}
}

func classicKey(sort string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: "account-0"}, "skey": &types.AttributeValueMemberS{Value: sort},
	}
}

// packedKey returns the key of an item of the aggregate x.
func packedKey(number string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: "account/x"}, "skey": &types.AttributeValueMemberN{Value: number},
	}
}

// slow returns a new database whose requests take time, so that a loop without pauses ends.
func slow(t *testing.T, layout journal.Layout) *dynamotest.DB {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 1, Layout: layout}))
	db.Inject(dynamotest.Latency(5*time.Millisecond, 5*time.Millisecond))
	return db
}

// listed writes n events to an aggregate of a group without members, and lists it as behind.
func listed(t *testing.T, config subscriber.Config, id string, n int) {
	t.Helper()
	first, _ := subscribe(t, config)
	require.NoError(t, first.WaitJoined(t.Context()))
	require.NoError(t, first.Close())
	write(t, config.Journal, id, 0, n)
	require.NoError(t, checkpoint.New(config.Journal).ListBehind(t.Context(), checkpoint.Group{Name: "group"}, checkpoint.Revision{}, checkpoint.Behind{
		Aggregate: account(id), Head: uint64(n),
	}))
}

func TestADamagedHeadAtATakeoverGivesUpNoEvent(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := slow(t, journal.Classic)
		j := open(t, db.Client())
		queue := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
		config := subscriber.Config{Journal: j, ConsumerGroup: "group", Failures: subscriber.PoisonQueue(3, queue, "poison")}
		listed(t, config, "x", 5)
		repair := damage(t, db.Client(), "snapshot", classicKey("account-x-0"), "version")
		sub, messages := subscribe(t, config)
		recording := db.Record()
		time.Sleep(3 * time.Minute)

		t.Logf("%d requests in three minutes", len(recording.Calls()))
		assert.Less(t, len(recording.Calls()), 1500)
		assert.Zero(t, sub.Stats().Poisoned)
		assert.NotZero(t, sub.Stats().Failures)
		behind := progress(t, j).Behind
		require.Len(t, behind, 1)
		require.NotNil(t, behind[0].Failure)
		assert.Contains(t, behind[0].Failure.Reason, "has no version")

		repair()
		write(t, j, "x", 5, 3)
		assert.Equal(t, expect("x", 1, 8), receiveAll(t, messages, 8))
	})
}

func TestADamagedEventBeforeTheStartGivesUpNoEvent(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		for name, policy := range map[string]subscriber.FailurePolicy{"block": subscriber.Block(), "skip": subscriber.Skip(2), "park": subscriber.Park(2)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) {
					db := slow(t, layout)
					j := open(t, db.Client())
					for n := range 10 {
						write(t, j, "x", n, 1)
					}
					key, attribute := classicKey("account-x-6"), "payload"
					if layout == journal.Packed {
						key, attribute = packedKey("6"), "c"
					}
					repair := damage(t, db.Client(), "journal", key, attribute)
					time.Sleep(time.Hour)
					sub, messages := subscribe(t, subscriber.Config{Journal: j, ConsumerGroup: "group", Start: subscriber.Now(), Failures: policy})
					time.Sleep(20 * time.Second)
					recording := db.Record()
					write(t, j, "x", 10, 1)
					time.Sleep(time.Minute)

					t.Logf("%d requests in a minute", len(recording.Calls()))
					assert.Less(t, len(recording.Calls()), 500)
					assert.NotZero(t, sub.Stats().Failures)
					assert.Zero(t, sub.Stats().Skipped+sub.Stats().Parked, "%+v", sub.Stats())

					repair()
					assert.Equal(t, expect("x", 11, 11), receiveAll(t, messages, 1))
				})
			})
		}
	})
}

func TestAHeadThatCountsTooManyEventsGivesUpNone(t *testing.T) {
	t.Parallel()
	queue := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	for name, policy := range map[string]subscriber.FailurePolicy{
		"skip": subscriber.Skip(2), "poison": subscriber.PoisonQueue(2, queue, "poison"), "defer": subscriber.Defer(subscriber.Backoff{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				db := slow(t, journal.Classic)
				j := open(t, db.Client())
				config := subscriber.Config{Journal: j, ConsumerGroup: "group", Failures: policy}
				listed(t, config, "x", 5)
				repair := change(t, db.Client(), "snapshot", classicKey("account-x-0"), &dynamodb.UpdateItemInput{
					UpdateExpression: aws.String("SET #a = :a"), ExpressionAttributeNames: map[string]string{"#a": "version"},
					ExpressionAttributeValues: map[string]types.AttributeValue{":a": &types.AttributeValueMemberN{Value: "77"}},
				})
				sub, messages := subscribe(t, config)
				assert.Equal(t, expect("x", 1, 5), receiveAll(t, messages, 5))
				time.Sleep(3 * time.Minute)

				stats := sub.Stats()
				assert.Zero(t, stats.Skipped+stats.Poisoned+stats.Deferred)
				behind := progress(t, j).Behind
				require.Len(t, behind, 1)
				require.NotNil(t, behind[0].Failure)
				assert.EqualValues(t, 6, behind[0].Failure.Number)
				assert.Contains(t, behind[0].Failure.Reason, "is missing")

				repair()
				write(t, j, "x", 5, 3)
				assert.Equal(t, expect("x", 6, 8), receiveAll(t, messages, 3))
			})
		})
	}
}

func TestAnItemThatCountsTooManyEventsGivesUpOnlyItsOwn(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := slow(t, journal.Packed)
		j := open(t, db.Client())
		config := subscriber.Config{Journal: j, ConsumerGroup: "group", Failures: subscriber.Skip(2)}
		listed(t, config, "x", 4)
		write(t, j, "x", 4, 1)
		repair := change(t, db.Client(), "journal", packedKey("5"), &dynamodb.UpdateItemInput{
			UpdateExpression: aws.String("SET #a = :a"), ExpressionAttributeNames: map[string]string{"#a": "n"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":a": &types.AttributeValueMemberN{Value: "77"}},
		})
		sub, messages := subscribe(t, config)
		assert.Equal(t, expect("x", 1, 4), receiveAll(t, messages, 4))
		time.Sleep(3 * time.Minute)
		assert.EqualValues(t, 1, sub.Stats().Skipped)
		assert.Equal(t, []uint64{5}, skippedNumbers(t, j))

		repair()
		write(t, j, "x", 5, 3)
		assert.Equal(t, expect("x", 6, 8), receiveAll(t, messages, 3))
	})
}
