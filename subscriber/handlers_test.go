package subscriber_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestHandlersOfAnEventDoNotPileUpBehindOneThatHangs(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 1)
	config := quick(j)
	config.AckDeadline = 5 * time.Millisecond
	sub, messages := subscribe(t, config)
	goOn := make(chan struct{})
	t.Cleanup(func() { close(goOn) })
	var handlers atomic.Int64
	go func() {
		for msg := range messages {
			handlers.Add(1)
			go func() {
				defer handlers.Add(-1)
				position, _ := subscriber.PositionFromContext(msg.Context())
				_ = position.Commit(msg.Context(), func(context.Context, subscriber.Advance) error {
					<-goOn
					return errRefused
				})
			}()
		}
	}()

	eventually(t, "it came many times", func() bool { return sub.Stats().Expired >= 20 })
	eventually(t, "the handler that hangs and that of the last message are left", func() bool { return handlers.Load() <= 2 })
	require.NoError(t, sub.Close())
	eventually(t, "the handler that hangs is left", func() bool { return handlers.Load() == 1 })
}

// The transaction counts, so until it ends it is not known whether the event was handled.
func TestAnEventIsNotGivenUpWhileItsHandlerIsInItsTransaction(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]func() subscriber.FailurePolicy{
		"park": func() subscriber.FailurePolicy { return subscriber.Park(1) },
		"poison queue": func() subscriber.FailurePolicy {
			queue := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
			return subscriber.PoisonQueue(1, queue, "poison")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				client := create(t, 1)
				j := open(t, client)
				write(t, j, "x", 0, 2)
				config := quick(j)
				config.AckDeadline = 200 * time.Millisecond
				config.Failures = policy()
				sub, messages := subscribe(t, config)
				msg := receive(t, messages)
				goOn, committed := make(chan struct{}), make(chan error, 1)
				position, _ := subscriber.PositionFromContext(msg.Context())
				go func() {
					committed <- position.Commit(msg.Context(), func(_ context.Context, a subscriber.Advance) error {
						<-goOn
						return transact(context.Background(), client, a)
					})
				}()
				eventually(t, "it is put off", func() bool { return sub.Stats().Expired > 0 && sub.Stats().Failures > 0 })
				close(goOn)
				require.NoError(t, <-committed)

				for next := ""; next != "x/2"; { // it may have been delivered again
					msg := receive(t, messages)
					next = string(msg.Payload)
					msg.Ack()
				}
				stats := sub.Stats()
				assert.Zero(t, stats.Parked+stats.Poisoned)
			})
		})
	}
}
