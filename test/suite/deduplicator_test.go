package suite_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

var (
	_ middleware.ExpiringKeyRepository = (*dedup.Keys)(nil)
	_ middleware.MessageHasher         = dedup.UUID
	_ middleware.MessageHasher         = dedup.Event
	_ message.HandlerMiddleware        = (*dedup.Positions)(nil).Middleware
)

func newKeys(t *testing.T) *dedup.Keys {
	t.Helper()
	client := testdb.Client(t)
	require.NoError(t, dedup.CreateTable(t.Context(), client, dedup.TableConfig{}))
	keys, err := dedup.NewKeys(client, dedup.KeysConfig{Group: "handler"})
	require.NoError(t, err)
	return keys
}

var errOnce = errors.New("this once")

// failsOnce is a handler that fails the first time.
func failsOnce(calls *int) message.HandlerFunc {
	return func(*message.Message) ([]*message.Message, error) {
		if *calls++; *calls == 1 {
			return nil, errOnce
		}
		return nil, nil
	}
}

func TestTheDeduplicatorDropsWhatComesAgain(t *testing.T) {
	t.Parallel()
	d := &middleware.Deduplicator{Repository: newKeys(t), KeyFactory: dedup.UUID, Timeout: patience}
	calls := 1
	handler := d.Middleware(failsOnce(&calls))
	same, payload := message.NewMessage(watermill.NewUUID(), []byte("10")), message.NewMessage(watermill.NewUUID(), []byte("10"))
	for range 3 {
		for _, msg := range []*message.Message{same, payload} {
			_, err := handler(msg)
			require.NoError(t, err)
		}
	}
	assert.Equal(t, 1+2, calls, "each once, though the payloads are equal")
}

// The following tests show faults of Watermill's Deduplicator that the package documentation
// describes. If one of these tests fails, the fault is fixed.

func TestTheDeduplicatorLosesAMessageWhoseHandlerFails(t *testing.T) {
	t.Parallel()
	d := &middleware.Deduplicator{Repository: newKeys(t), KeyFactory: dedup.UUID, Timeout: patience}
	calls := 0
	handler := d.Middleware(failsOnce(&calls))
	msg := message.NewMessage(watermill.NewUUID(), nil)
	_, err := handler(msg)
	require.ErrorIs(t, err, errOnce)
	_, err = handler(msg)
	require.NoError(t, err)
	assert.Equal(t, 1, calls, "the second time it is taken for a duplicate, and acked")
}

func TestTheDeduplicatorOutsideOfRetryDoesNot(t *testing.T) {
	t.Parallel()
	d := &middleware.Deduplicator{Repository: newKeys(t), KeyFactory: dedup.UUID, Timeout: patience}
	calls := 0
	handler := d.Middleware(middleware.Retry{MaxRetries: 1, InitialInterval: time.Millisecond}.Middleware(failsOnce(&calls)))
	for range 2 {
		_, err := handler(message.NewMessage("1", nil))
		require.NoError(t, err)
	}
	assert.Equal(t, 2, calls)
}

func TestTheDeduplicatorLosesWhatAHandlerReturnsIfItCannotBePublished(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	pub, sub := s.ordered(t, "group")
	d := &middleware.Deduplicator{Repository: newKeys(t), KeyFactory: dedup.UUID, Timeout: patience}
	broken := &refusing{}
	var done inbox
	startRouter(t, func(router *message.Router) {
		router.AddHandler("handler", "order", sub, "invoice", broken, func(msg *message.Message) ([]*message.Message, error) {
			assert.NoError(t, done.handle(msg))
			return message.Messages{msg.Copy()}, nil
		}).AddMiddleware(d.Middleware)
	})
	require.NoError(t, pub.Publish("order", orderEvent("1", 1), orderEvent("1", 2)))
	eventually(t, "it has gone on to the next", func() bool { return done.size() == 2 })
	assert.Equal(t, []string{"1/1", "1/2"}, done.payloads("1"))
	assert.Empty(t, broken.published)
}

// refusing is a publisher that is down.
type refusing struct{ published []*message.Message }

func (*refusing) Publish(string, ...*message.Message) error { return errors.New("down") }
func (*refusing) Close() error                              { return nil }

func TestTheDeduplicatorTakesPayloadsOfOneSumForOneMessage(t *testing.T) {
	t.Parallel()
	d := &middleware.Deduplicator{Repository: newKeys(t), Timeout: patience}
	calls := 1
	handler := d.Middleware(failsOnce(&calls))
	for range 2 {
		_, err := handler(message.NewMessage(watermill.NewUUID(), []byte(`{"Amount":10}`)))
		require.NoError(t, err)
	}
	assert.Equal(t, 1+1, calls)
}

func TestTheDeduplicatorWithoutATimeoutGivesFiveMilliseconds(t *testing.T) {
	t.Parallel()
	var left time.Duration
	d := &middleware.Deduplicator{Repository: asked(func(ctx context.Context) {
		deadline, _ := ctx.Deadline()
		left = time.Until(deadline)
	})}
	_, err := d.Middleware(message.PassthroughHandler)(message.NewMessage("1", nil))
	require.NoError(t, err)
	assert.LessOrEqual(t, left, 5*time.Millisecond)
}

type asked func(ctx context.Context)

func (a asked) IsDuplicate(ctx context.Context, _ string) (bool, error) {
	a(ctx)
	return false, nil
}

func TestTheSubscriberNeedsNoDeduplicator(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var tried tries
	var got inbox
	pub, _ := s.ordered(t, "publisher")
	for n := range 3 {
		require.NoError(t, pub.Publish("order", orderEvent("1", n+1), orderEvent("2", n+1)))
	}
	// The second round continues where the first ended.
	for round := range 2 {
		_, sub := s.ordered(t, "group")
		router := startRouter(t, func(router *message.Router) {
			router.AddConsumerHandler("handler", "order", sub, func(msg *message.Message) error {
				if tried.count(msg) < 3 {
					return errors.New("not yet")
				}
				return got.handle(msg)
			})
		})
		eventually(t, "all of them have come", func() bool { return got.size() >= 6+round })
		require.NoError(t, router.Close())
		require.NoError(t, pub.Publish("order", orderEvent("1", 4+round)))
	}
	assert.Equal(t, []string{"1/1", "1/2", "1/3", "1/4"}, got.payloads("1"))
	assert.Equal(t, []string{"2/1", "2/2", "2/3"}, got.payloads("2"))
}

// A forwarder delivers everything twice, as after a crash before its acks, to a transport that
// keeps order but knows no positions.
func TestForwardedEventsAreHandledOnceByTheirPositions(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	pub, sub := s.ordered(t, "forwarder")
	_, again := s.ordered(t, "forwarder again")
	transport := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, testLogger(t))
	require.NoError(t, dedup.CreateTable(t.Context(), s.client, dedup.TableConfig{}))
	positions, err := dedup.NewPositions(s.client, dedup.PositionsConfig{Group: "mails"})
	require.NoError(t, err)
	var tried tries
	var got, came inbox
	startRouter(t, func(router *message.Router) {
		for name, from := range map[string]message.Subscriber{"forward": sub, "forward again": again} {
			router.AddHandler(name, "order", from, "orders", transport, func(msg *message.Message) ([]*message.Message, error) {
				return message.Messages{msg.Copy()}, nil
			})
		}
		router.AddConsumerHandler("mails", "orders", transport, func(msg *message.Message) error {
			if tried.count(msg) == 1 {
				return errors.New("no mail yet")
			}
			_, ok := subscriber.RecordFromContext(msg.Context())
			assert.False(t, ok, "no transport carries a context")
			return got.handle(msg)
		}).AddMiddleware(func(h message.HandlerFunc) message.HandlerFunc {
			return func(msg *message.Message) ([]*message.Message, error) {
				produced, err := h(msg)
				if err == nil {
					assert.NoError(t, came.handle(msg))
				}
				return produced, err
			}
		}, positions.Middleware)
	})
	const perOrder = 5
	for n := range perOrder {
		require.NoError(t, pub.Publish("order", orderEvent("1", n+1), orderEvent("2", n+1)))
	}
	eventually(t, "all have come twice", func() bool { return came.size() == 2*2*perOrder })
	for _, id := range []string{"1", "2"} {
		var want []string
		for n := range perOrder {
			want = append(want, fmt.Sprintf("%s/%d", id, n+1))
		}
		assert.Equal(t, want, got.payloads(id), "each handled once, in order")
	}
}
