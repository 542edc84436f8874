package process_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

const patience = 2 * time.Minute

// hanging is a publisher that does not return for commands with an order that hangs, until it is
// released.
type hanging struct {
	*world
	release chan struct{}
	// How often each hanging command was published, by UUID.
	calls sync.Map
}

func (w *world) hanging() *hanging {
	h := &hanging{world: w, release: make(chan struct{})}
	w.t.Cleanup(h.free)
	return h
}

func (h *hanging) free() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.release:
	default:
		close(h.release)
	}
}

func (h *hanging) Publish(topic string, messages ...*message.Message) error {
	for _, msg := range messages {
		if strings.Contains(string(msg.Payload), "hangs") {
			n, _ := h.calls.LoadOrStore(msg.UUID, &atomic.Int64{})
			n.(*atomic.Int64).Add(1)
			<-h.release
		}
	}
	return h.world.Publish(topic, messages...)
}

// hang returns how many commands hang, and how often they were published.
func (h *hanging) hang() (commands, times int) {
	h.calls.Range(func(_, n any) bool {
		commands, times = commands+1, times+int(n.(*atomic.Int64).Load())
		return true
	})
	return commands, times
}

func (w *world) rejected() (orders []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.sent {
		if s.topic == "RejectOrder" {
			orders = append(orders, s.metadata.Get("aggregate_id"))
		}
	}
	return orders
}

func TestAPublisherThatHangsHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const many = 12 // more than a manager fires at once
	for n := range many {
		require.NoError(t, w.manager(w.client, w.config()).Handle(event(t.Context(), fmt.Sprint("e", n), fmt.Sprint("hangs", n), OrderPlaced{Total: 5})))
	}
	broker := w.hanging()
	config := w.config()
	config.Publisher, config.PollInterval, config.RetryAfter = broker, 10*time.Millisecond, time.Hour
	m := w.manager(w.client, config)
	w.pass(deadline)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	require.Eventually(t, func() bool { n, _ := broker.hang(); return n == many }, patience, 5*time.Millisecond)

	require.NoError(t, m.Handle(event(t.Context(), "other", "o2", OrderPlaced{Total: 5})))
	w.pass(deadline)
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual([]string{"o2"}, w.rejected()) }, patience, 5*time.Millisecond, "another timeout fires")
	cancel()
	require.ErrorIs(t, await.Receive(t, ended, "Run must end while a publisher hangs"), context.Canceled)
}

func TestACommandThatHangsIsPublishedOnceAtATime(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		broker := w.hanging()
		config := w.config()
		config.Publisher, config.RetryAfter = broker, 50*time.Millisecond
		m := w.manager(w.client, config)
		for range 2 {
			err := m.Handle(event(t.Context(), "e1", "hangs", OrderPlaced{Total: 5}))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "the publisher does not return")
		}
		w.pass(time.Second)
		_, err := m.Fire(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		commands, times := broker.hang()
		assert.Equal(t, 1, commands)
		assert.Equal(t, 1, times, "the others wait for the same one")
		broker.free()
		require.NoError(t, m.Handle(event(t.Context(), "e1", "hangs", OrderPlaced{Total: 5})))
		assert.Contains(t, w.topics(), "ReserveCredit")
	})
}

func TestAPanicOfThePublisherIsAnError(t *testing.T) {
	t.Parallel()
	w := setup(t)
	config := w.config()
	config.Publisher = panicking{w}
	err := w.manager(w.client, config).Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5}))
	require.ErrorContains(t, err, "the publisher panics: boom")
}

type panicking struct{ *world }

func (panicking) Publish(string, ...*message.Message) error { panic("boom") }

// mute can stop replying to reads, as a dead connection does.
type mute struct {
	*dynamodb.Client
	isMute atomic.Bool
}

func (m *mute) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if m.isMute.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return m.Client.GetItem(ctx, in, o...)
}

func TestADeadConnectionDoesNotHoldUpAMessageForEver(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		client := &mute{Client: w.client}
		j := testjournal.Open(t, client, journal.Config{})
		config := w.config()
		config.RetryAfter = 50 * time.Millisecond
		m, err := process.New(j, client, definition, config)
		require.NoError(t, err)
		client.isMute.Store(true)
		err = m.Handle(event(context.WithoutCancel(t.Context()), "e1", "o1", OrderPlaced{Total: 5}))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
