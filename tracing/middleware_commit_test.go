package tracing_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/tracing"
)

// executor is a repository with spans of either kind.
type executor interface {
	Execute(ctx context.Context, id string, decide aggregate.Decision[Account], given ...repository.Option) (repository.Aggregate[Account], error)
	Save(ctx context.Context, a repository.Aggregate[Account], events aggregate.Events[Account], given ...repository.Option) (repository.Aggregate[Account], error)
}

func TestTheMiddlewareMakesTheSpansOfTheWrappers(t *testing.T) {
	t.Parallel()
	once := repository.WithCommandID("command-1")
	errRefused := errors.New("insufficient funds")
	for name, do := range map[string]func(w *world, r executor) error{
		"committed": func(_ *world, r executor) error {
			_, err := r.Execute(t.Context(), "42", events(Deposited{1}, Withdrawn{1}))
			return err
		},
		"nothing": func(_ *world, r executor) error {
			_, err := r.Execute(t.Context(), "42", events())
			return err
		},
		"refused": func(_ *world, r executor) error {
			_, err := r.Execute(t.Context(), "42", refuse(errRefused))
			require.ErrorIs(t, err, errRefused)
			return nil
		},
		"repeated": func(w *world, r executor) error {
			testjournal.Execute(t, w.plain, "42", events(Deposited{1}), once)
			_, err := r.Execute(t.Context(), "42", events(Deposited{1}), once)
			return err
		},
		"saved": func(w *world, r executor) error {
			account, err := w.plain.NewAggregate("42")
			require.NoError(t, err)
			_, err = r.Save(t.Context(), account, aggregate.Events[Account]{Deposited{1}})
			return err
		},
		"failed": func(_ *world, r executor) error {
			_, err := r.Execute(t.Context(), "42", events(Deposited{1}), repository.WithExpectedVersion(7))
			require.Error(t, err)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			span := func(of func(*world) executor) sdktrace.ReadOnlySpan {
				w := setup(t)
				require.NoError(t, do(w, of(w)))
				return w.span("commit account")
			}
			want := span(func(w *world) executor { return w.accounts })
			got := span(func(w *world) executor {
				config := repository.Config{MaxAttempts: 3, Middleware: tracing.CommitMiddleware(w.config)}
				return testjournal.Repository(t, w.journal, Accounts, config)
			})
			attributes := slices.DeleteFunc(slices.Clone(want.Attributes()), func(a attribute.KeyValue) bool {
				return a == attribute.Int("millrace.commit.decisions", 0) // it leaves this out
			})
			assert.ElementsMatch(t, attributes, got.Attributes())
			assert.Equal(t, want.Status(), got.Status())
			assert.Equal(t, want.SpanKind(), got.SpanKind())
			assert.Len(t, got.Events(), len(want.Events()))
		})
	}
}

func TestTheMiddlewareTracesJointCommits(t *testing.T) {
	t.Parallel()
	spans := map[bool]sdktrace.ReadOnlySpan{} // by wrapped
	for _, wrapped := range []bool{true, false} {
		w := setup(t)
		accounts := w.plain
		if !wrapped {
			accounts = testjournal.Repository(t, w.journal, Accounts, repository.Config{Middleware: tracing.CommitMiddleware(w.config)})
		}
		var tx repository.Transaction
		one, two := accounts.AddTo(&tx, "1"), accounts.AddTo(&tx, "2")
		decide := func() error {
			one.Append(Deposited{1})
			two.Append(Deposited{2})
			return nil
		}
		if wrapped {
			require.NoError(t, tracing.NewTransaction(&tx, w.config).Execute(t.Context(), decide))
		} else {
			require.NoError(t, tx.Execute(t.Context(), decide))
		}
		spans[wrapped] = w.span("commit account")
	}
	assert.ElementsMatch(t, spans[true].Attributes(), spans[false].Attributes())
}

// One option traces all repositories of an App, unless a repository has a middleware of its own.
func TestAnAppTracesAllItsRepositories(t *testing.T) {
	t.Parallel()
	w := setup(t)
	app, err := millrace.Open(t.Context(), w.db.Client(), millrace.Config{
		Journal: journal.Config{Layout: journal.Classic, Shards: 1}, CommitMiddleware: tracing.CommitMiddleware(w.config),
	})
	require.NoError(t, err)
	accounts, err := millrace.Repository(app, Accounts, repository.Config{})
	require.NoError(t, err)
	others, err := millrace.Repository(app, aggregate.Define[Account]("other", Deposited{}), repository.Config{
		Middleware: func(ctx context.Context, _ *repository.Call, next func(context.Context) error) error {
			return next(ctx)
		},
	})
	require.NoError(t, err)
	testjournal.Execute(t, accounts, "42", events(Deposited{1}))
	testjournal.Execute(t, others, "42", events(Deposited{1}))
	assert.Equal(t, "commit account", w.span("commit account").Name())
	assert.Len(t, w.spans.Ended(), 1)
}
