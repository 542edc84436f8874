package process_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
)

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// last returns the metadata of the last event of a process.
func (w *world) last(m *process.Manager[Saga], id string) aggregate.Metadata {
	w.t.Helper()
	_, version := w.saga(m, id)
	for r, err := range w.j.Events(w.t.Context(), aggregate.ID{Type: "saga", Value: id}, version, version) {
		require.NoError(w.t, err)
		return r.Metadata
	}
	return nil
}

func TestATimeoutGoesOnWithTheTraceOfItsSetting(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	placed := event(t.Context(), "e1", "o1", OrderPlaced{Total: 5}) // from another subscriber
	placed.Metadata["traceparent"] = traceparent
	require.NoError(t, m.Handle(placed))
	set := aggregate.Metadata{"correlation_id": "request", "causation_id": "e1", "traceparent": traceparent}
	assert.Equal(t, set, w.last(m, "o1"))
	require.Len(t, w.sent, 1)
	assert.Equal(t, traceparent, w.sent[0].metadata["traceparent"])

	w.pass(deadline)
	require.Equal(t, 1, w.fire(m))

	fired := w.last(m, "o1")
	assert.NotEqual(t, "e1", fired["causation_id"], "the timeout is the cause")
	fired["causation_id"] = "e1"
	assert.Equal(t, set, fired)
	require.Len(t, w.sent, 2)
	assert.Equal(t, "RejectOrder", w.sent[1].topic)
	assert.Equal(t, traceparent, w.sent[1].metadata["traceparent"])
	assert.Equal(t, "request", w.sent[1].metadata["correlation_id"])
}

func TestTheTraceOfTheHandlingGoesBeforeThatOfTheEvent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	ctx := aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{"traceparent": traceparent, "tenant": "a"})
	placed := event(ctx, "e1", "o1", OrderPlaced{Total: 5})
	placed.Metadata["traceparent"], placed.Metadata["tracestate"] = "00-old", "old"
	require.NoError(t, m.Handle(placed))

	assert.Equal(t, aggregate.Metadata{
		"correlation_id": "request", "causation_id": "e1", "traceparent": traceparent, "tenant": "a",
	}, w.last(m, "o1"))
	require.Len(t, w.sent, 1)
	assert.Equal(t, "a", w.sent[0].metadata["tenant"])
}

func TestOtherMetadataOfTheContextDoesNotReplaceTheTraceOfTheEvent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	placed := event(aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{"tenant": "a"}), "e1", "o1", OrderPlaced{Total: 5})
	placed.Metadata["traceparent"] = traceparent
	require.NoError(t, m.Handle(placed))
	assert.Equal(t, traceparent, w.last(m, "o1")["traceparent"])
}

func TestAroundRunsEachStep(t *testing.T) {
	t.Parallel()
	w := setup(t)
	config := w.config()
	var steps []string
	config.Middleware = func(ctx context.Context, id aggregate.ID, in process.Input, next func(context.Context) error) error {
		err := next(aggregate.ContextWithMetadata(ctx, aggregate.Metadata{"step": id.String() + "/" + in.Type + in.Timeout}))
		steps = append(steps, id.String()+" "+in.Type+in.Timeout)
		return err
	}
	m := w.manager(w.client, config)
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	assert.Equal(t, "saga-o1/order.placed", w.last(m, "o1")["step"])
	w.pass(deadline)
	require.Equal(t, 1, w.fire(m))
	assert.Equal(t, "saga-o1/credit", w.last(m, "o1")["step"])
	assert.Equal(t, []string{"saga-o1 order.placed", "saga-o1 credit"}, steps)
}
