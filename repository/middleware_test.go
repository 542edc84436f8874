package repository_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// A caller must not take a commit that was not written for a success.
func TestAMiddlewareCannotHideThatNothingWasWritten(t *testing.T) {
	t.Parallel()
	s := setup(t)
	execute := func(m repository.Middleware, decide aggregate.Decision[Account]) (single, several error) {
		repo := s.accounts(t, repository.Config{Middleware: m})
		_, single = repo.Execute(t.Context(), "42", decide)
		var tx repository.Transaction
		of := repo.AddTo(&tx, "42")
		return single, tx.Execute(t.Context(), func() error {
			events, err := decide(of.State)
			of.Append(events...)
			return err
		})
	}
	single, several := execute(func(context.Context, *repository.Call, func(context.Context) error) error { return nil }, Deposit(5))
	require.ErrorContains(t, single, "the middleware has not called next")
	require.ErrorContains(t, several, "the middleware has not called next")

	single, several = execute(func(ctx context.Context, _ *repository.Call, next func(context.Context) error) error {
		_ = next(ctx)
		return nil
	}, Withdraw(5))
	require.ErrorIs(t, single, ErrInsufficientFunds)
	require.ErrorIs(t, several, ErrInsufficientFunds)
	_, err := s.accounts(t, repository.Config{}).Load(t.Context(), "42")
	require.ErrorIs(t, err, journal.ErrNotFound)
}
