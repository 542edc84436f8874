package readmodel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestSkippedEventsAreCountedThoughTheyAreNotLeft(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("a", 0, 3)
	w.write("b", 0, 1)
	m := w.open(w.config())
	first := mustServing(t, m)
	w.begins(first, topic, false)
	require.NoError(t, groups.New(w.j).Skip(t.Context(), first.Group(), account("a"), 1))
	require.NoError(t, groups.New(w.j).Skip(t.Context(), first.Group(), account("b"), 1))
	assert.Equal(t, readmodel.Progress{Begun: true, Left: 2, Skipped: 2}, w.progress(m, first))
	p, err := m.Estimate(t.Context(), first)
	require.NoError(t, err)
	assert.EqualValues(t, 2, p.Skipped)
}

func TestAGenerationWhoseGroupRestsSaysSo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("a", 0, 50)
	m := w.open(w.config())
	next := mustBegin(t, m)
	w.begins(next, topic, false)
	require.NoError(t, groups.Of(w.j, next.Group(), topic).Pause(t.Context()))
	assert.Equal(t, readmodel.Progress{Begun: true, Left: 50, Paused: []string{topic}}, w.progress(m, next))
	require.ErrorContains(t, m.Switch(t.Context(), next), "its group is paused on topic account")
	require.NoError(t, groups.Of(w.j, next.Group(), topic).Resume(t.Context()))
	assert.Empty(t, w.progress(m, next).Paused)

	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: w.j, ConsumerGroup: next.Group(), Failures: subscriber.Stop(1), Timing: subscriber.Timing{PollInterval: 5 * time.Millisecond}, CloseTimeout: time.Second,
	}, nil)
	require.NoError(t, err)
	messages, err := sub.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	(<-messages).Nack()
	require.Eventually(t, func() bool { return len(w.progress(m, next).Stopped) > 0 }, patience, 10*time.Millisecond)
	require.NoError(t, sub.Close())
	p := w.progress(m, next)
	assert.Equal(t, []string{topic}, p.Stopped)
	assert.Equal(t, []string{topic}, p.Paused)
	require.ErrorContains(t, m.Switch(t.Context(), next), "an event has stopped its group on topic account")
}
