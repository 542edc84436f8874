package subscriber_test

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
)

// Watermill's universal suite, in its short form. Its messages carry no aggregate id, so each
// Publisher has one stream, in the order of which they are delivered.

func TestWatermillSuiteInOneGroup(t *testing.T) {
	t.Parallel()
	client := create(t, 4)
	inGroup := func(t *testing.T, group string) (message.Publisher, message.Subscriber) {
		return pubSub(t, open(t, client), group)
	}
	tests.TestPubSub(t,
		tests.Features{ConsumerGroups: true, GuaranteedOrder: true, Persistent: true, ForceShort: true},
		func(t *testing.T) (message.Publisher, message.Subscriber) { return inGroup(t, "suite") },
		inGroup,
	)
}

func TestWatermillSuiteInNewGroups(t *testing.T) {
	t.Parallel()
	client := create(t, 4)
	tests.TestPubSub(t,
		tests.Features{NewSubscriberReceivesOldMessages: true, GuaranteedOrder: true, Persistent: true, ForceShort: true},
		func(t *testing.T) (message.Publisher, message.Subscriber) {
			return pubSub(t, open(t, client), watermill.NewShortUUID())
		},
		nil,
	)
}

// pubSub leaves all settings at their defaults, but for the time that Close waits for messages nobody answers.
func pubSub(t *testing.T, j *journal.Journal, group string) (message.Publisher, message.Subscriber) {
	t.Helper()
	pub, err := publisher.NewPublisher(publisher.Config{Journal: j}, testLogger(t))
	require.NoError(t, err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: group, CloseTimeout: time.Second}, testLogger(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = sub.Close() }) // TestPublishSubscribeInOrder leaves some open
	return pub, sub
}
