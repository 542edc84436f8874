package metrics_test

import (
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
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

type Deposited struct{ Amount int }

func (Deposited) EventType() string { return "account.deposited.v1" }

func TestASubscriberAndAProjectionAreCountedWhileTheyWork(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: 1}))
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("seen"), BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("event"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("event"), AttributeType: types.ScalarAttributeTypeS}},
	})
	require.NoError(t, err)
	j := testjournal.Open(t, client, journal.Config{})
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "totals", NackResendSleep: time.Millisecond, Timing: subscriber.Timing{PollInterval: 10 * time.Millisecond},
	}, nil)
	require.NoError(t, err)
	seen, err := projection.New(client, projection.Config{},
		projection.On(func(_ context.Context, _ Deposited, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{projection.Put(types.Put{
				TableName: aws.String("seen"),
				Item:      map[string]types.AttributeValue{"event": &types.AttributeValueMemberS{Value: r.EventID}},
			})}, nil
		}))
	require.NoError(t, err)
	testjournal.Append(t, j, storage.Commit{Aggregate: aggregate.ID{Type: "account", Value: "42"}, Events: []storage.Event{
		{Type: "account.deposited.v1", Payload: []byte(`{"Amount":1}`)}, {Type: "account.noted.v1", Payload: []byte(`{}`)},
	}})

	messages, err := sub.Subscribe(t.Context(), "account")
	require.NoError(t, err)
	first := <-messages
	first.Nack()
	for range 2 {
		msg := <-messages
		require.NoError(t, seen.Handle(msg))
		msg.Ack()
	}

	assert.Equal(t, []string{"account"}, sub.Topics())
	tail := collector(sub)
	require.Eventually(t, func() bool {
		return gather(t, tail)["millrace_subscriber_messages_acked_total{consumer_group=totals}"] == 2
	}, patience, time.Millisecond, "both events are acked")
	series := gather(t, tail)
	assert.Equal(t, 3, series["millrace_subscriber_messages_delivered_total{consumer_group=totals}"])
	assert.Equal(t, 1, series["millrace_subscriber_messages_nacked_total{consumer_group=totals}"])
	effects := gather(t, metrics.NewProjectionCollector(seen, metrics.ProjectionConfig{Name: "seen"}))
	assert.Equal(t, 1, effects["millrace_projection_events_applied_total{projection=seen}"])
	assert.Equal(t, 1, effects["millrace_projection_events_ignored_total{projection=seen}"])

	require.NoError(t, sub.Close())
	series = gather(t, tail)
	assert.Equal(t, 2, series["millrace_subscriber_messages_acked_total{consumer_group=totals}"], "counts outlive Close")
	assert.NotContains(t, series, "millrace_subscriber_shards_held{consumer_group=totals,topic=account}", "shards do not")
}
