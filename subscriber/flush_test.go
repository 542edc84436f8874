package subscriber_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/faults"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestAFlushWhoseReplyWasLostDoesNotCostTheShard(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	faulty, j := faults.New(client), open(t, client)
	write(t, j, "x", 0, 2)
	write(t, j, "y", 0, 1)
	var lost atomic.Int64
	mend := faulty.Inject(faults.UpdateItem, onRow("position/x-0", func(ctx context.Context, call faults.Call) (any, error) {
		if in := call.Input.(*dynamodb.UpdateItemInput); !strings.Contains(*in.UpdateExpression, "#p") {
			return call.Send(ctx) // a claim
		}
		defer lost.Add(1)
		return faults.LoseReply()(ctx, call)
	}))
	sub, messages := subscribe(t, quick(open(t, faulty)))
	first := map[string]*message.Message{}
	for range 2 {
		msg := receive(t, messages)
		first[string(msg.Payload)] = msg
	}
	first["x/1"].Ack()
	eventually(t, "it was flushed, which nobody knows", func() bool { return lost.Load() > 0 })
	assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
	mend()

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
	faulty, j := faults.New(client), open(t, client)
	const aggregates = 40
	for i := range aggregates {
		write(t, j, fmt.Sprint("a", i), 0, 1)
	}
	faulty.Inject(faults.UpdateItem, onRow("position/", refuse))
	config := quick(open(t, faulty))
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
