// Package testjournal opens journals and repositories for tests. A test fails if one cannot be
// opened.
//
//	j := testjournal.New(t, testdb.Client(t), journal.Config{Layout: journal.Packed, Shards: 2})
//	accounts := testjournal.Repository(t, j, Accounts, repository.Config{})
package testjournal

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// New creates the tables of a journal and opens it.
func New(t testing.TB, client journal.Client, config journal.Config) *journal.Journal {
	t.Helper()
	require.NoError(t, journal.Create(t.Context(), client, config))
	return Open(t, client, config)
}

// Open opens a journal whose tables exist, as another process would.
func Open(t testing.TB, client journal.Client, config journal.Config) *journal.Journal {
	t.Helper()
	j, err := journal.Open(t.Context(), client, config)
	require.NoError(t, err)
	return j
}

// Append appends a commit.
func Append(t testing.TB, j *journal.Journal, commit storage.Commit) {
	t.Helper()
	_, err := j.Internal().Append(t.Context(), commit)
	require.NoError(t, err)
}

// Repository returns a repository of a journal.
func Repository[S any](
	t testing.TB, j *journal.Journal, definition aggregate.Definition[S], config repository.Config,
) *repository.Repository[S] {
	t.Helper()
	r, err := repository.New(j, definition, config)
	require.NoError(t, err)
	return r
}

// EachLayout runs a test for each layout, in parallel.
func EachLayout(t *testing.T, test func(t *testing.T, layout journal.Layout)) {
	t.Helper()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			test(t, layout)
		})
	}
}

// Execute executes a decision on an aggregate, of a repository with spans or without.
func Execute[S any](t testing.TB, r interface {
	Execute(context.Context, string, aggregate.Decision[S], ...repository.Option) (repository.Aggregate[S], error)
}, id string, decide aggregate.Decision[S], options ...repository.Option,
) repository.Aggregate[S] {
	t.Helper()
	a, err := r.Execute(t.Context(), id, decide, options...)
	require.NoError(t, err)
	return a
}
