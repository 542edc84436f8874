package subscriber_test

import (
	"fmt"
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
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// damage removes an attribute of an item, and returns a function that restores the item.
func damage(t *testing.T, client journal.Client, table string, key map[string]types.AttributeValue, attribute string) (repair func()) {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: key})
	require.NoError(t, err)
	_, err = client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &table, Key: key, UpdateExpression: aws.String("REMOVE #a"),
		ConditionExpression: aws.String("attribute_exists(#a)"), ExpressionAttributeNames: map[string]string{"#a": attribute},
	})
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

// slow returns a new database whose requests take time, so that a loop without pauses ends.
func slow(t *testing.T, layout journal.Layout) *dynamotest.DB {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 1, Layout: layout}))
	db.Inject(dynamotest.Latency(5*time.Millisecond, 5*time.Millisecond))
	return db
}

func TestADamagedHeadAtATakeoverGivesUpNoEvent(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := slow(t, journal.Classic)
		j := open(t, db.Client())
		queue := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
		config := subscriber.Config{Journal: j, ConsumerGroup: "group", Failures: subscriber.PoisonQueue(3, queue, "poison")}
		first, _ := subscribe(t, config)
		require.NoError(t, first.Joined(t.Context()))
		require.NoError(t, first.Close())
		write(t, j, "x", 0, 5)
		require.NoError(t, checkpoint.New(j).ListBehind(t.Context(), checkpoint.Group{Name: "group"}, checkpoint.Revision{}, checkpoint.Behind{
			Aggregate: account("x"), Head: 5,
		}))
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
	inLayouts(t, func(t *testing.T, layout journal.Layout) {
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
						key = map[string]types.AttributeValue{"pkey": &types.AttributeValueMemberS{Value: "account/x"}, "skey": &types.AttributeValueMemberN{Value: "6"}}
						attribute = "c"
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
					assert.Zero(t, sub.Stats().Skipped+sub.Stats().Parked, fmt.Sprintf("%+v", sub.Stats()))

					repair()
					assert.Equal(t, expect("x", 11, 11), receiveAll(t, messages, 1))
				})
			})
		}
	})
}
