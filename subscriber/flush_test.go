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
	"github.com/millrace-dev/millrace/internal/checkpoint"
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
	// Other updates of the row are claims.
	lost := faulty.Inject(dynamotest.LoseReply(), dynamotest.On("UpdateItem"), onRow("position/x-0", "#p"))
	sub, messages := subscribe(t, unanswered(quick(open(t, faulty.Client(testdb.Once)))))
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
		lag, err := groups.Of(j, "group", topic).Lag(context.Background(), groups.LagOptions{})
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
	config := unanswered(quick(open(t, faulty.Client(testdb.Once))))
	config.Timing.CommitInterval = time.Hour
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

// It is not known whether the aggregate is parked, so its event is not delivered again. The next
// owner would let the aggregate wait, and rely on an entry that this owner would delete.
func TestAnEventWhoseAggregateMayBeParkedDoesNotComeAgain(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	faulty := dynamotest.NewProxy(t, client)
	write(t, open(t, client), "x", 0, 2)
	lost := faulty.Inject(dynamotest.LoseReply(), dynamotest.On("UpdateItem"), onRow("behind/x", ""), dynamotest.Times(2))
	config := quick(open(t, faulty.Client(testdb.Once)))
	config.Failures = subscriber.Park(1)
	sub, messages := subscribe(t, config)
	receive(t, messages).Nack()
	eventually(t, "it is parked", func() bool { return sub.Stats().Parked == 1 })
	assert.Equal(t, 2, lost.Fired())
	assert.EqualValues(t, 1, sub.Stats().Delivered)
}

// A former owner relies on its own entries, and lets its cursor pass the events that they lead to.
func TestNoEntryIsTakenOffTheListBeforeTheCursorIsTheOwners(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	faulty, j := dynamotest.NewProxy(t, client), open(t, client)
	first, _ := subscribe(t, quick(j))
	eventually(t, "the group has begun", func() bool { return len(first.Shards()) == 1 })
	require.NoError(t, first.Close())
	write(t, j, "x", 0, 1)
	store := checkpoint.New(j)
	group := checkpoint.Group{Name: "group"}
	require.NoError(t, store.ListBehind(t.Context(), group, checkpoint.Revision{Epoch: 1}, checkpoint.Behind{Aggregate: account("x"), Head: 1}))

	refused := faulty.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"), onRow("cursor", ""))
	_, messages := subscribe(t, quick(open(t, faulty.Client(testdb.Once))), subscriber.CursorInterval(time.Millisecond))
	receive(t, messages).Ack()
	eventually(t, "the position is stored", func() bool {
		position, _, err := store.ReadPosition(t.Context(), group, account("x"), 9)
		return err == nil && position == 1
	})
	fired := refused.Fired()
	eventually(t, "the cursor is refused", func() bool { return refused.Fired() > fired+2 })
	listed := func() bool {
		_, listed, err := store.Listed(t.Context(), group, account("x"))
		return err != nil || listed
	}
	assert.True(t, listed())
	refused.Remove()
	eventually(t, "it is off the list", func() bool { return !listed() })
}
