package subscriber_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
