package process_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
)

// The process of a CreditReserved is the order, and its source is the account.
func TestAReactionGetsTheIDOfItsProcess(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var seen []string
	see := func(who string, in process.Input) { seen = append(seen, who+" "+in.Process) }
	definition := process.Define(sagas,
		process.On(
			func(e CreditReserved, in process.Input) string { see("key", in); return e.Order },
			func(_ Saga, _ CreditReserved, in process.Input) (step, error) {
				see("event", in)
				return process.Record(Reserved{}).Send(ApproveOrder{in.Process}).SetTimeout("credit", deadline), nil
			}).Starts(),
		process.OnTimeout("credit", func(_ Saga, in process.Input) (step, error) {
			see("timeout", in)
			return process.Record(Ended{"too late"}), nil
		}),
	)
	config := w.config()
	config.Middleware = func(ctx context.Context, id aggregate.ID, in process.Input, next func(context.Context) error) error {
		assert.Equal(t, id.Value, in.Process)
		return next(ctx)
	}
	m, err := process.New(w.j, w.client, definition, config)
	require.NoError(t, err)

	require.NoError(t, m.Handle(event(t.Context(), "e1", "account-9", CreditReserved{Order: "o1"})))
	w.pass(deadline)
	require.Equal(t, 1, w.fire(m))

	assert.Equal(t, []string{"key ", "event o1", "timeout o1"}, seen)
	require.Len(t, w.sent, 1)
	assert.JSONEq(t, `{"Order":"o1"}`, w.sent[0].payload)
}
