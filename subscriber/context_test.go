package subscriber_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/await"
)

func TestContextOfAMessageEndsWithItsHandlingWhoeverAsksAndWhenever(t *testing.T) {
	t.Parallel()
	type key struct{}
	j := setup(t, 1)
	write(t, j, "a", 0, 2)
	config := quick(j)
	sub := newSubscriber(t, config)
	ctx := context.WithValue(t.Context(), key{}, "value")
	messages, err := sub.Subscribe(ctx, topic)
	require.NoError(t, err)

	msg := receive(t, messages)
	asked := msg.Context()
	before, cancel := context.WithTimeout(asked, time.Hour)
	defer cancel()
	stopped := make(chan struct{})
	context.AfterFunc(asked, func() { close(stopped) })
	require.NoError(t, asked.Err())
	require.NoError(t, before.Err())
	msg.Ack()
	for name, done := range map[string]<-chan struct{}{
		"the context": asked.Done(), "one derived from it": before.Done(), "a function registered with it": stopped,
	} {
		await.End(t, done, name+" must end with the ack")
	}
	assert.ErrorIs(t, before.Err(), context.Canceled)
	assert.Equal(t, context.Canceled, context.Cause(asked))

	msg = receive(t, messages)
	unasked := msg.Context()
	msg.Ack()
	require.Eventually(t, func() bool { return unasked.Err() != nil }, patience, time.Millisecond, "an end that nobody waits for")
	assert.Equal(t, context.Canceled, unasked.Err())
	assert.Equal(t, context.Canceled, context.Cause(unasked))
	select {
	case <-unasked.Done():
	default:
		t.Fatal("Done is open after the end")
	}
	after, cancel := context.WithCancel(unasked)
	defer cancel()
	assert.Equal(t, context.Canceled, after.Err(), "derived after the end")
	assert.Equal(t, "value", after.Value(key{}))
}
