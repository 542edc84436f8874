package tracing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/tracing"
)

func TestASpanSaysWhatHasBecomeOfACommit(t *testing.T) {
	t.Parallel()
	errRefused := errors.New("insufficient funds")
	once := repository.WithCommandID("command-1")
	for name, test := range map[string]struct {
		do        func(*world) error
		outcome   string
		errorType string // empty if the status is not an error
	}{
		"committed": {
			do: func(w *world) error {
				account, err := w.accounts.NewAggregate("42")
				require.NoError(t, err)
				_, err = w.accounts.Save(t.Context(), account, aggregate.Events[Account]{Deposited{1}})
				return err
			},
			outcome: "committed",
		},
		"nothing": {
			do: func(w *world) error {
				_, err := w.accounts.Execute(t.Context(), "42", events())
				return err
			},
			outcome: "nothing",
		},
		"repeated": {
			do: func(w *world) error {
				testjournal.Execute(t, w.plain, "42", events(Deposited{1}), once)
				_, err := w.accounts.Execute(t.Context(), "42", events(Deposited{1}), once)
				return err
			},
			outcome: "repeated",
		},
		"repeated by Save": {
			do: func(w *world) error {
				account := testjournal.Execute(t, w.plain, "42", events(Deposited{1}), once)
				_, err := w.accounts.Save(t.Context(), account, aggregate.Events[Account]{Deposited{1}}, once)
				require.ErrorAs(t, err, new(*journal.DuplicateCommandError))
				return nil
			},
			outcome: "repeated",
		},
		"refused": {
			do: func(w *world) error {
				_, err := w.accounts.Execute(t.Context(), "42", refuse(errRefused))
				require.ErrorIs(t, err, errRefused)
				return nil
			},
			outcome: "refused",
		},
		"conflict": {
			do: func(w *world) error {
				stale, err := w.accounts.NewAggregate("42")
				require.NoError(t, err)
				testjournal.Execute(t, w.plain, "42", events(Deposited{1}))
				_, err = w.accounts.Save(t.Context(), stale, aggregate.Events[Account]{Deposited{1}})
				return err
			},
			outcome: "failed", errorType: "conflict",
		},
		"cancelled": {
			do: func(w *world) error {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				_, err := w.accounts.Execute(ctx, "42", events(Deposited{1}))
				return err
			},
			outcome: "failed", errorType: "canceled",
		},
		"unknown": {
			do: func(w *world) error {
				w.open(100 * time.Millisecond)
				w.db.Inject(dynamotest.CutConnection(), dynamotest.On("TransactWriteItems"))
				_, err := w.accounts.Execute(t.Context(), "42", events(Deposited{1}))
				return err
			},
			outcome: "unknown", errorType: "outcome_unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)

			err := test.do(w)

			span := w.span("commit account")
			attributes := attributesOf(span)
			assert.Equal(t, test.outcome, attributes["millrace.commit.outcome"])
			if test.errorType == "" {
				require.NoError(t, err)
				assert.Equal(t, codes.Unset, span.Status().Code)
				assert.NotContains(t, attributes, "error.type")
				return
			}
			require.Error(t, err)
			assert.Equal(t, test.errorType, attributes["error.type"])
			assert.Equal(t, codes.Error, span.Status().Code)
			assert.Equal(t, err.Error(), span.Status().Description)
		})
	}
}

func TestASpanCountsHowOftenADecisionRan(t *testing.T) {
	t.Parallel()
	w := setup(t)
	decided := 0
	testjournal.Execute(t, w.accounts, "42", func(Account) (aggregate.Events[Account], error) {
		if decided++; decided == 1 {
			testjournal.Execute(t, w.plain, "42", events(Withdrawn{1})) // a faster writer
		}
		return aggregate.Events[Account]{Deposited{1}}, nil
	})

	attributes := attributesOf(w.span("commit account"))
	assert.Equal(t, int64(2), attributes["millrace.commit.decisions"])
	assert.Equal(t, int64(2), attributes["millrace.aggregate.version"])
	assert.Equal(t, []string{"account.deposited.v1"}, attributes["millrace.event.types"])
}

// manyErrors is an error that cannot be compared, like many errors of validators.
type manyErrors []string

func (e manyErrors) Error() string { return e[0] }

func TestTheErrorOfADecisionIsARefusal(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.accounts.Execute(t.Context(), "42", refuse(manyErrors{"no such account", "no amount"}))

	var refused *repository.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, manyErrors{"no such account", "no amount"}, refused.Err)
	assert.Equal(t, "refused", attributesOf(w.span("commit account"))["millrace.commit.outcome"])
}

func TestAPanicOfADecisionEndsItsSpanAsAnError(t *testing.T) {
	t.Parallel()
	w := setup(t)
	assert.PanicsWithValue(t, "broken", func() {
		_, _ = w.accounts.Execute(t.Context(), "42", func(Account) (aggregate.Events[Account], error) { panic("broken") })
	})

	assert.Equal(t, codes.Error, w.span("commit account").Status().Code)
}

func TestWhatNoCommitCanComeOfHasNoSpan(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.accounts.Execute(t.Context(), "", events(Deposited{1}))
	require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
	_, err = w.accounts.Execute(t.Context(), "42", nil)
	require.ErrorIs(t, err, repository.ErrNilDecision)

	assert.Empty(t, w.spans.Started())
}

func TestOtherMetadataStaysAsItIs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx := aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{
		aggregate.CorrelationIDKey: "request-1", aggregate.CausationIDKey: "command-1", "tenant": "a",
	})
	_, err := w.accounts.Execute(ctx, "42", events(Deposited{1}))
	require.NoError(t, err)

	assert.Equal(t, aggregate.Metadata{
		aggregate.CorrelationIDKey: "request-1", aggregate.CausationIDKey: "command-1", "tenant": "a",
		"traceparent": traceparent(w.span("commit account")),
	}, w.stored("42"))
}

func TestACommitGoesOnWithTheTraceInTheMetadataOfItsContext(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, requested := w.begin("request")
	carried := aggregate.Metadata{"traceparent": traceparent(requested), "tracestate": "vendor=old"}
	ctx := aggregate.ContextWithMetadata(t.Context(), carried)
	_, err := w.accounts.Execute(ctx, "42", events(Deposited{1}))
	require.NoError(t, err)

	commit := w.span("commit account")
	requireChild(t, requested, commit)
	assert.Equal(t, aggregate.Metadata{"traceparent": traceparent(commit), "tracestate": "vendor=old"}, w.stored("42"))

	other, _ := w.begin("other") // without a tracestate
	_, err = w.accounts.Execute(aggregate.ContextWithMetadata(other, carried), "43", events(Deposited{1}))
	require.NoError(t, err)
	commit = w.named("commit account", 2)[1]
	assert.Equal(t, aggregate.Metadata{"traceparent": traceparent(commit), "tracestate": ""}, w.stored("43"),
		"the state of another trace must not go with this one")
}

func TestContextWithTraceLinksTheCommitsOfPlainRepositories(t *testing.T) {
	t.Parallel()
	w := setup(t)
	request, requested := w.begin("request")
	_, err := w.plain.Execute(tracing.ContextWithTrace(request, w.config), "42", events(Deposited{1}))
	require.NoError(t, err)

	assert.Equal(t, aggregate.Metadata{"traceparent": traceparent(requested)}, w.stored("42"))
	assert.Equal(t, t.Context(), tracing.ContextWithTrace(t.Context(), w.config), "no span, nothing to carry")
}

func TestNothingIsStoredWhereNobodyTraces(t *testing.T) {
	t.Parallel()
	w := setup(t)
	untraced := w.config
	untraced.TracerProvider = nil // the global provider; no test of this package sets it
	testjournal.Execute(t, w.traced(untraced), "42", events(Deposited{1}))
	assert.Empty(t, w.stored("42"))

	silent := w.config
	silent.Propagator = nil
	testjournal.Execute(t, w.traced(silent), "42", events(Deposited{1}))
	assert.Empty(t, w.stored("42"))
	assert.Equal(t, trace.SpanKindProducer, w.span("commit account").SpanKind())
}

func TestARepositoryWithSpansMakesNoRoundTripMore(t *testing.T) {
	t.Parallel()
	w := setup(t)
	type execute func(context.Context, string, aggregate.Decision[Account], ...repository.Option) (repository.Aggregate[Account], error)
	calls := func(id string, execute execute) int {
		recording := w.db.Record()
		defer recording.Stop()
		_, err := execute(t.Context(), id, events(Deposited{1}))
		require.NoError(t, err)
		return len(recording.Calls())
	}

	assert.Equal(t, calls("plain", w.plain.Execute), calls("traced", w.accounts.Execute))
}

func TestOneSpanNamesAllAggregatesOfADecision(t *testing.T) {
	t.Parallel()
	errRefused := errors.New("insufficient funds")
	w := setup(t)
	var tx repository.Transaction
	from, to := w.accounts.AddTo(&tx, "a"), w.accounts.AddTo(&tx, "b")
	ctx, request := w.begin("request")
	pay := func() error {
		from.Append(Withdrawn{1})
		to.Append(Deposited{1})
		return nil
	}
	for _, test := range []struct {
		outcome string
		decide  func() error
		options []repository.Option
	}{
		{"committed", pay, []repository.Option{repository.WithCommandID("c")}},
		{"repeated", pay, []repository.Option{repository.WithCommandID("c")}},
		{"nothing", func() error { return nil }, nil},
		{"refused", func() error { return errRefused }, nil},
	} {
		w.spans.Reset()
		err := tx.Execute(ctx, test.decide, test.options...)
		if test.outcome == "refused" {
			require.ErrorIs(t, err, errRefused)
		} else {
			require.NoError(t, err)
		}
		span := w.span("commit account")
		assert.Equal(t, request.SpanContext().TraceID(), span.SpanContext().TraceID(), test.outcome)
		attributes := attributesOf(span)
		assert.Equal(t, test.outcome, attributes["millrace.commit.outcome"])
		assert.Equal(t, []string{"account-a", "account-b"}, attributes["millrace.aggregates"])
		if test.outcome == "committed" {
			assert.Equal(t, []string{"account.withdrawn.v1", "account.deposited.v1"}, attributes["millrace.event.types"])
		}
	}
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
