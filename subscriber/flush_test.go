package subscriber_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestAFlushWhoseReplyWasLostDoesNotCostTheShard(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	faulty, j := dynamotest.NewProxy(t, client), open(t, client)
	write(t, j, "x", 0, 2)
	write(t, j, "y", 0, 1)
	lost := faulty.Inject(dynamotest.LoseReply(), dynamotest.On("UpdateItem"), onRow("position/x-0", "#p")) // others are claims
	sub, messages := subscribe(t, quick(open(t, faulty.Client(testdb.Once))))
	first := map[string]*message.Message{}
	for range 2 {
		msg := receive(t, messages)
		first[string(msg.Payload)] = msg
	}
	first["x/1"].Ack()
	eventually(t, "it was flushed, which nobody knows", func() bool { return lost.Fired() > 0 })
	assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
	lost.Remove()

	eventually(t, "only y is left", func() bool {
		lag, err := groups.New(j).Lag(context.Background(), "group", topic, groups.LagOptions{})
		return err == nil && lag.Events == 1
	})
	require.NoError(t, first["y/1"].Context().Err())
	assert.EqualValues(t, 1, sub.Shards()[0].Epoch)
}

func TestAFlushThatFailsWritesOneLine(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	faulty, j := dynamotest.NewProxy(t, client), open(t, client)
	const aggregates = 40
	for i := range aggregates {
		write(t, j, fmt.Sprint("a", i), 0, 1)
	}
	faulty.Inject(dynamotest.CutConnection(), dynamotest.On("UpdateItem"), onRow("position/", ""))
	config := quick(open(t, faulty.Client(testdb.Once)))
	config.CommitInterval = time.Hour
	log := &diary{}
	sub, err := subscriber.NewSubscriber(config, log)
	require.NoError(t, err)
	messages, err := sub.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	receiveAll(t, messages, aggregates)

	require.NoError(t, sub.Close()) // flushes

	lines := log.of("Cannot write a checkpoint")
	require.Len(t, lines, 1)
	assert.Equal(t, aggregates, lines[0].fields["rows"])
}
