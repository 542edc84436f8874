package journal_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

func TestResolveThatCannotReadIsAnError(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		written, err := s.Resolve(ctx, &journal.OutcomeUnknownError{ID: user("1"), First: 1, CommitID: "commit"})

		require.ErrorIs(t, err, context.Canceled)
		assert.False(t, written)
		assert.ErrorContains(t, err, "resolve commit commit")
	})
}

func TestAnOutcomeThatLacksWhatFindsItsCommitIsRefusedAndNotAskedFor(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		client := &meddler{Client: s.client}
		j := s.through(t, client)
		client.calls = nil
		for name, outcome := range map[string]*journal.OutcomeUnknownError{
			"nil":           nil,
			"nothing in it": {},
			"no number":     {ID: user("1"), CommitID: "c"},
			// Events of other programs have no commit id either.
			"no commit":                {ID: user("1"), First: 1},
			"only a command":           {ID: user("1"), CommandID: "c"},
			"a command without commit": {ID: user("1"), First: 1, CommandID: "c"},
		} {
			written, err := j.Resolve(t.Context(), outcome)
			require.ErrorIs(t, err, journal.ErrInvalidCommit, name)
			assert.ErrorContains(t, err, "needs ID, First and CommitID", name)
			assert.False(t, written, name)
		}
		for name, id := range map[string]aggregate.ID{"no id": {}, "half an id": {Type: "user"}} {
			written, err := j.Resolve(t.Context(), &journal.OutcomeUnknownError{ID: id, First: 1, CommitID: "c"})
			require.ErrorAs(t, err, new(*aggregate.InvalidIDError), name)
			assert.False(t, written, name)
		}
		assert.Empty(t, client.calls)
	})
}
