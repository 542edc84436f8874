package process_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
)

func TestAStepIsGivenUpAfterMaxAttempts(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{0: 50, 3: 3} {
		testdb.WithFakeTime(t, func(t *testing.T) { giveUp(t, limit, want) })
	}
}

func giveUp(t *testing.T, limit, want int) {
	t.Helper()
	w := setup(t)
	others := testjournal.Repository(t, w.j, sagas, repository.Config{})
	attempts := 0
	overtaken := process.Define(sagas, process.On(byID, func(Saga, OrderPlaced, process.Input) (step, error) {
		attempts++
		_, err := others.Execute(t.Context(), "o1", func(Saga) (aggregate.Events[Saga], error) {
			return aggregate.Events[Saga]{Begun{1}}, nil
		})
		return begun, err
	}).Starts())
	config := w.config()
	config.MaxAttempts = limit
	m, err := process.New(w.j, w.client, overtaken, config)
	require.NoError(t, err)

	require.ErrorIs(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{})), journal.ErrConflict)
	assert.Equal(t, want, attempts)
}
