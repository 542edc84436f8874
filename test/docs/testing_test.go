package docs

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestATermEndsAfterFourWeeks(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app, err := millrace.Open(t.Context(), db.Client(), millrace.Config{
		Journal: journal.Config{Layout: journal.Packed, Shards: 1, Now: db.Clock().Now},
	})
	require.NoError(t, err)
	accounts, err := millrace.Repository(app, Accounts, repository.Config{})
	require.NoError(t, err)
	terms, err := millrace.Process(t.Context(), app, Terms, process.Config{}, "balance")
	require.NoError(t, err)
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	_, err = accounts.Execute(ctx, "42", Deposit(100))
	require.NoError(t, err)
	require.NoError(t, app.Settle(ctx)) // the timeout is set
	db.Clock().Advance(28 * 24 * time.Hour)
	require.NoError(t, app.Settle(ctx)) // it has fired
	ended, err := terms.Repository().Load(ctx, "42")
	require.NoError(t, err)
	assert.True(t, ended.State.Over)
	require.NoError(t, stop())
}

type (
	term      struct{ Over bool }
	termBegan struct{}
	termEnded struct{}
)

func (termBegan) EventType() string { return "term.began.v1" }
func (termEnded) EventType() string { return "term.ended.v1" }
func (termBegan) Apply(*term)       {}
func (termEnded) Apply(t *term)     { t.Over = true }

// Terms has a process for each account, which ends four weeks after the first deposit.
var Terms = process.Define(aggregate.Define[term]("term", termBegan{}, termEnded{}),
	process.On(
		func(_ deposited, in process.Input) string { return in.Source.Value },
		func(term, deposited, process.Input) (process.Step[term], error) {
			return process.Record(termBegan{}).SetTimeout("end", 28*24*time.Hour), nil
		}).Starts(),
	process.OnTimeout("end", func(term, process.Input) (process.Step[term], error) {
		return process.Record(termEnded{}), nil
	}),
).EndsWhen(func(t term) bool { return t.Over })

func TestAFrozenClockFiresNoTimeout(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	db.Clock().Freeze()
	require.NoError(t, process.CreateTable(t.Context(), db.Client(), ""))
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Packed, Shards: 1}))
	j, err := journal.Open(t.Context(), db.Client(), journal.Config{Now: db.Clock().Now})
	require.NoError(t, err)
	m, err := process.New(j, db.Client(), Terms, process.Config{})
	require.NoError(t, err)
	msg := message.NewMessageWithContext(t.Context(), "1", []byte(`{}`))
	msg.Metadata = message.Metadata{"name": "balance.deposited.v1", "aggregate_type": "balance", "aggregate_id": "42"}
	require.NoError(t, m.Handle(msg))

	for _, step := range []struct {
		advance time.Duration
		fired   int
	}{{28*24*time.Hour - time.Millisecond, 0}, {0, 0}, {time.Millisecond, 1}} {
		db.Clock().Advance(step.advance)
		fired, err := m.Fire(t.Context())
		require.NoError(t, err)
		assert.Equal(t, step.fired, fired, step.advance)
	}
}

func TestADeferredEventComesWhenTheClockIsAdvanced(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app, err := millrace.Open(t.Context(), db.Client(), millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1, Now: db.Clock().Now}})
	require.NoError(t, err)
	accounts, err := millrace.Repository(app, Accounts, repository.Config{})
	require.NoError(t, err)
	later := func(c *subscriber.Config) {
		c.Failures = subscriber.Defer(subscriber.Backoff{Pause: 24 * time.Hour, MaxPause: 24 * time.Hour})
	}
	var attempts atomic.Int64
	require.NoError(t, app.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"balance"}, Subscriber: later},
		cqrs.NewGroupEventHandler(func(context.Context, *deposited) error {
			if attempts.Add(1) == 1 {
				return errors.New("out of order")
			}
			return nil
		})))
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	account, err := accounts.Execute(t.Context(), "42", Deposit(100))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, app.Groups().WaitToken(ctx, "mails", account.Token()), "a deferred event counts as handled")
	assert.EqualValues(t, 1, attempts.Load())

	db.Clock().Advance(24 * time.Hour)
	require.Eventually(t, func() bool { return attempts.Load() == 2 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, stop())
}

// Account is the state in the tests of the page.
type Account = balance

var Accounts = aggregate.Define[balance]("balance", deposited{})

func Deposit(cents int) aggregate.Decision[balance] {
	return func(balance) (aggregate.Events[balance], error) {
		return aggregate.Events[balance]{deposited{cents}}, nil
	}
}

func TestADepositIsStoredOnceThoughTheReplyIsLost(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	client := db.Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Packed, Shards: 1}))
	j, err := journal.Open(t.Context(), client, journal.Config{})
	require.NoError(t, err)
	accounts, err := repository.New(j, Accounts, repository.Config{})
	require.NoError(t, err)

	lost := db.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem"), dynamotest.Times(1))
	account, err := accounts.Execute(t.Context(), "42", Deposit(100))
	require.NoError(t, err)
	assert.EqualValues(t, 1, account.Version)
	assert.Equal(t, 1, lost.Fired(), "the fault has happened")
}
