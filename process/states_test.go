package process_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
)

var _ repository.AnyRepository = (*process.Manager[Saga])(nil)

func TestTheStatesOfAManagerAreThoseOfItsProcesses(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 1})))
	want, version := w.saga(m, "o1")

	assert.Equal(t, m.Repository().Type(), m.Type())
	var last repository.StateAfter
	for state, err := range m.States(t.Context(), "o1", repository.StatesQuery{}) {
		require.NoError(t, err)
		last = state
	}
	assert.Equal(t, want, last.State)
	assert.Equal(t, version, last.Record.Number)
}
