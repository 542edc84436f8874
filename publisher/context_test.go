package publisher_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

func under(ctx context.Context, msg *message.Message) *message.Message {
	msg.SetContext(ctx)
	return msg
}

// After Watermill's Timeout middleware the contexts of returned messages have ended.
func TestAMessageIsPublishedThoughItsContextHasEnded(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	require.NoError(t, s.publisher(publisher.Config{}).Publish("order", under(ctx, messageTo(order1, "x"))))

	assert.Equal(t, []string{"x"}, s.payloads(order1))
}

func TestTheEndOfAContextLeavesWhatIsUnderWayAlone(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	arrived, release := s.wire.hold()
	ctx, cancel := context.WithCancel(t.Context())
	first := async(p, "order", under(ctx, messageTo(order1, "first")))
	await.End(t, arrived, "the first commit")
	second := async(p, "order", under(ctx, messageTo(order1, "second")))
	eventually(t, func() bool { return p.Queued(order1) == 2 }, "the second waits")
	cancel()
	release()
	await.End(t, arrived, "the second commit")
	release()
	require.NoError(t, await.Receive(t, first, "Publish"))
	require.NoError(t, await.Receive(t, second, "Publish"))
	assert.Equal(t, []string{"first", "second"}, s.payloads(order1))
}
