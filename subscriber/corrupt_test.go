package subscriber_test

import (
	"context"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/subscriber"
)

// outgrown returns a journal with ten events of x, the ninth of them corrupt, and a config with a
// buffer that is too small for them. So they are read by aggregate, several at a time.
func outgrown(t *testing.T) subscriber.Config {
	t.Helper()
	client := create(t, 1)
	j := open(t, client)
	commit := storage.Commit{Aggregate: account("x")}
	for range 10 {
		commit.Events = append(commit.Events, storage.Event{Type: "deposited", Payload: []byte(strings.Repeat("a", 5000))})
	}
	_, err := j.Internal().Append(context.Background(), commit)
	require.NoError(t, err)
	corrupt(t, client, "account-x-9")
	config := quick(j)
	config.BufferBytes = 64 << 10
	return config
}

func receiveNumbers(t *testing.T, messages <-chan *message.Message, n int) (numbers []uint64) {
	t.Helper()
	for range n {
		msg := receive(t, messages)
		_, number, _ := subscriber.AggregateFromContext(msg.Context())
		numbers = append(numbers, number)
		msg.Ack()
	}
	return numbers
}

func TestHealthyEventsBeforeACorruptOneDoNotGoToThePoisonQueue(t *testing.T) {
	t.Parallel()
	config := outgrown(t)
	queue := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	config.Failures = subscriber.PoisonQueue(1, queue, "poison")
	sub, messages := subscribe(t, config)

	assert.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 10}, receiveNumbers(t, messages, 9))

	assert.EqualValues(t, 1, sub.Stats().Poisoned)
}

func TestAnAggregateIsParkedWithItsCorruptEventAndNotBefore(t *testing.T) {
	t.Parallel()
	config := outgrown(t)
	config.Failures = subscriber.Park(1)
	sub, messages := subscribe(t, config)

	assert.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8}, receiveNumbers(t, messages, 8))

	eventually(t, "it is parked", func() bool { return sub.Stats().Parked == 1 })
	behind := progress(t, config.Journal).Behind
	require.Len(t, behind, 1)
	require.NotNil(t, behind[0].Parked)
	assert.EqualValues(t, 9, behind[0].Parked.Number)
}

func TestACorruptEventIsSkippedAndNoneBeforeIt(t *testing.T) {
	t.Parallel()
	config := outgrown(t)
	config.Failures = subscriber.Skip(1)
	_, messages := subscribe(t, config)

	assert.Equal(t, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 10}, receiveNumbers(t, messages, 9))

	assert.Equal(t, []uint64{9}, skippedNumbers(t, config.Journal))
	assert.Empty(t, skipped(t, config.Journal)[0].EventType)
}
