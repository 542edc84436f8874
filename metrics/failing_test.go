package metrics_test

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/subscriber"
)

// Two groups have the same events and the same handler, which fails on one aggregate and is slow
// with another. They have different failure policies.
func TestGaugesTellBlockedParkedAndSlowAggregatesApart(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	past := testjournal.New(t, client, journal.Config{Layout: journal.Classic, Shards: 1, Now: func() time.Time { return now.Add(-90 * time.Second) }})
	deposits := make([]storage.Event, 3)
	for i := range deposits {
		deposits[i] = storage.Event{Type: "account.deposited.v1", Payload: []byte(`{"Amount":1}`)}
	}
	for _, id := range []string{"bad", "slow", "good"} {
		testjournal.Append(t, past, storage.Commit{Aggregate: aggregate.ID{Type: "account", Value: id}, Events: deposits})
	}
	present := testjournal.Open(t, client, journal.Config{Now: func() time.Time { return now }})

	for name, policy := range map[string]struct {
		failures        subscriber.FailurePolicy
		blocked, parked int
	}{
		"patient": {failures: subscriber.Block(), blocked: 1},
		"strict":  {failures: subscriber.Park(1), parked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sub, err := subscriber.NewSubscriber(subscriber.Config{
				Journal: present, ConsumerGroup: name, Failures: policy.failures,
				NackResendSleep: time.Hour, MaxNackResendSleep: time.Hour, CloseTimeout: time.Millisecond,
			}, nil)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, sub.Close()) })
			messages, err := sub.Subscribe(t.Context(), "account")
			require.NoError(t, err)
			var slow *message.Message
			for range 5 {
				msg := await.Receive(t, messages, "a message")
				switch msg.Metadata.Get(subscriber.AggregateIDKey) {
				case "bad":
					msg.Nack()
				case "slow":
					slow = msg
				default:
					msg.Ack()
				}
			}
			tail := metrics.NewSubscriberCollector(sub, metrics.SubscriberConfig{
				ConsumerGroup: name, Now: func() time.Time { return now },
			})
			waitFor := func(lag int, what string) {
				t.Helper()
				shard := "{consumer_group=" + name + ",shard=0,topic=account}"
				require.EventuallyWithT(t, func(t *assert.CollectT) {
					series := gather(t, tail)
					assert.Equal(t, policy.blocked, series["millrace_subscriber_blocked_aggregates"+shard])
					assert.Equal(t, policy.parked, series["millrace_subscriber_parked_aggregates"+shard])
					assert.Equal(t, policy.parked, series["millrace_subscriber_aggregates_parked_total{consumer_group="+name+"}"])
					assert.Equal(t, lag, series["millrace_subscriber_lag_events"+shard])
					assert.Equal(t, 90, series["millrace_subscriber_oldest_unacked_age_seconds"+shard])
				}, patience, time.Millisecond, what)
			}

			waitFor(6, "the bad one and the slow one have three events each")
			require.NotNil(t, slow)
			slow.Ack()
			for range 2 {
				await.Receive(t, messages, "a message").Ack()
			}
			waitFor(3, "the bad one is left")
		})
	}
}
