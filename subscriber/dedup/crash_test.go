package dedup_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

// The subscriber stores positions a little after the ack, so after a crash it delivers acked events
// again.
func TestAHandlerWithPositionsSeesOnlyTheEventInItsHandsAgainAfterACrash(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]bool{"with positions": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) { crash(t, with) })
		})
	}
}

// crash lets a process crash after it has handled events, with or without the middleware.
func crash(t *testing.T, with bool) {
	t.Helper()
	client := database(t)
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: 1}))
	const n = 30
	mails := mails{sent: map[string]int{}}
	handle := mails.send
	if with {
		handle = newPositions(t, client, dedup.PositionsConfig{Group: "mails"}).Middleware(handle)
	}
	// The first process crashes after the last ack: the positions that it stores later do not
	// arrive.
	proxy := dynamotest.NewProxy(t, client)
	first := consume(t, proxy, handle, time.Hour)
	j := testjournal.Open(t, client, journal.Config{})
	for i := range n {
		testjournal.Append(t, j, storage.Commit{Aggregate: order(fmt.Sprint(i)), Events: []storage.Event{{Type: "placed", ID: fmt.Sprint(i)}}})
	}
	// The last mail is sent before its handler has returned.
	require.Eventually(t, func() bool { return first.Stats().Acked == n }, 2*time.Minute, time.Millisecond)
	proxy.Inject(dynamotest.CutConnection())
	require.NoError(t, first.Close())

	again := consume(t, dynamotest.NewProxy(t, client), handle, 10*time.Millisecond)
	testjournal.Append(t, j, storage.Commit{Aggregate: order("last"), Events: []storage.Event{{Type: "placed", ID: "last"}}})
	require.Eventually(t, func() bool { return mails.of("last") == 1 }, 2*time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return again.Stats().Acked >= n+1 }, 2*time.Minute, time.Millisecond)
	require.NoError(t, again.Close())
	if with {
		assert.Equal(t, n+1, mails.total())
	} else {
		assert.Greater(t, mails.total(), n+1, "or the crash has come too late")
	}
}

// mails counts the mails that a handler has sent for each event.
type mails struct {
	mu   sync.Mutex
	sent map[string]int
}

func (m *mails) send(msg *message.Message) ([]*message.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent[msg.UUID]++
	return nil, nil
}

func (m *mails) of(id string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent[id]
}

func (m *mails) total() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, sent := range m.sent {
		n += sent
	}
	return n
}

// consume handles the events of the group in a process.
func consume(t *testing.T, through *dynamotest.Proxy, handle message.HandlerFunc, commitInterval time.Duration) *subscriber.Subscriber {
	t.Helper()
	j := testjournal.Open(t, through.Client(), journal.Config{})
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "mails", Timing: subscriber.Timing{
			CommitInterval: commitInterval, LeaseDuration: time.Second,
			PollInterval: 5 * time.Millisecond, MaxPollInterval: 20 * time.Millisecond,
		}, CloseTimeout: 100 * time.Millisecond,
	}, nil)
	require.NoError(t, err)
	messages, err := sub.Subscribe(t.Context(), "order")
	require.NoError(t, err)
	go func() {
		for msg := range messages {
			if _, err := handle(msg); err != nil {
				msg.Nack()
				continue
			}
			msg.Ack()
		}
	}()
	return sub
}
