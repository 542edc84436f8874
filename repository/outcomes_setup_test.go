package repository_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// outcomeStore is the database of the cells that differ neither in call nor in layout nor in
// incident. Each cell has its own aggregate.
type outcomeStore struct {
	store // of the calls; its journal sends each request once
	db    *dynamotest.DB
	rival *repository.Repository[Account] // of other processes
	fresh *repository.Repository[Account] // reads what is stored
	armed atomic.Bool                     // a call is in progress, and no other process acts
}

func newOutcomeStore(t *testing.T, layout journal.Layout) *outcomeStore {
	t.Helper()
	db := dynamotest.New(t)
	others := openOn(t, db, journal.Config{Layout: layout})
	others.emails(t)
	s := &outcomeStore{
		db: db, store: store{client: db.Client(testdb.Once, testdb.Unhurried), direct: others.direct},
		rival: others.accounts(t, repository.Config{Snapshots: repository.Never, Cache: 1}),
		fresh: others.accounts(t, repository.Config{}),
	}
	mustExecute(t, s.rival, "other", Deposit(1), writes(claim("taken")))
	s.journal = testjournal.Open(t, s.client, journal.Config{RetryBudget: time.Nanosecond})
	return s
}

// observe makes the call of a cell, and returns what happened. M is the model after the call.
func (s *outcomeStore) observe(t *testing.T, c cell, m *model, id string) (got outcome, err error) {
	t.Helper()
	r := s.prepare(t, begin(c), id)
	var options []repository.Option
	if c.command != withoutID {
		options = append(options, request(id, contentOfCall)...)
	}
	if c.incident == writeRefused {
		options = append(options, writes(claim("taken")))
	}
	struck, remove := s.inject(c.incident)
	s.armed.Store(true)
	a, err := c.invoke(t.Context(), r, id, m.expected, func(a Account) (Events, error) {
		got.seen = append(got.seen, a.Balance)
		got.struck = s.interfere(t, c, id, len(got.seen)) || got.struck
		switch c.decision {
		case appends:
			return Events{Deposited{ownAmount}}, nil
		case refuses:
			return nil, ErrInsufficientFunds
		}
		return nil, nil
	}, options...)
	s.armed.Store(false)
	remove()

	if c.incident == readsThrottled {
		// Some requests read more than others. Only the outcome says whether that matters.
		got.struck = m.struck
	} else {
		got.struck = got.struck || struck() || errors.As(err, new(*journal.WriteRefusedError))
	}
	got.result = resultOf(c, a, id, err)
	got.stored = s.stored(t, m, r, id, err)
	return got, err
}

// resultOf describes the aggregate that a call returned.
func resultOf(c cell, a repository.Aggregate[Account], id string, err error) string {
	repetition := ""
	if a.Repeated {
		repetition = again
	}
	var none repository.Aggregate[Account]
	if c.call == byTransaction {
		none.ID = account(id) // a participant has its ID in any case
	}
	switch {
	case err != nil && bare(a) == none:
		return noResult
	case a.ID != account(id):
		return "an aggregate with another id, " + a.ID.String()
	}
	return describe(a, false) + repetition
}

// stored describes what is stored after a call with an error. A conflict that ends one call must
// not end the next call of the repository too, and its loads must return what is stored.
func (s *outcomeStore) stored(t *testing.T, m *model, r *repository.Repository[Account], id string, failed error) string {
	t.Helper()
	a, err := s.fresh.Load(t.Context(), id)
	if !errors.Is(err, journal.ErrNotFound) && !errors.As(err, new(*journal.DeletedError)) {
		require.NoError(t, err)
	}
	if len(m.history) > 0 && m.gone != (err != nil) {
		return "deleted, or not there"
	}
	stored := describe(a, false)
	if m.cache == notCached {
		return stored
	}
	if errors.Is(failed, journal.ErrConflict) && m.attempts() == 1 {
		next, err := m.invoke(t.Context(), r, id, -1, Deposit(ownAmount))
		if err != nil || next.Version != a.Version+1 {
			stored += fmt.Sprintf(", and the next call of the repository returns %s, %v", describe(next, false), err)
		}
		return stored
	}
	kept, err := r.Load(t.Context(), id)
	if bare(kept) != bare(a) || m.gone != (err != nil) {
		stored += ", and a load of the repository returns " + describe(kept, false)
	}
	return stored
}

// prepare stores what a cell needs, and returns the repository of the call.
func (s *outcomeStore) prepare(t *testing.T, m *model, id string) *repository.Repository[Account] {
	t.Helper()
	config := repository.Config{Snapshots: repository.Never, MaxAttempts: m.attempts()}
	if m.cache != notCached {
		config.Cache = 1
	}
	r := s.accounts(t, config)
	keep := func(when string) {
		if m.cache == when {
			mustLoad(t, r, id)
		}
	}
	if m.aggregate != withoutEvents {
		endow(t, s.rival, id, othersAmount)
		keep(cachedOld)
	}
	switch {
	case m.isExecuted() && m.aggregate == withoutEvents:
		s.executeCommand(t, m.cell, id, nil)
	case m.isExecuted():
		s.executeCommand(t, m.cell, id, Events{Deposited{ownAmount}})
	case len(m.history) > 1:
		endow(t, s.rival, id, othersAmount)
	}
	keep(cachedLast)
	if m.gone {
		s.delete(t, id)
	}
	return r
}

const contentOfCall = "the content of the command"

func (s *outcomeStore) executeCommand(t *testing.T, c cell, id string, events Events) {
	t.Helper()
	content := contentOfCall
	if c.command == reusedID || c.incident == rivalReusesID {
		content = "another"
	}
	_, err := c.invoke(t.Context(), s.rival, id, -1, always(events...), request(id, content)...)
	require.NoError(t, err)
}

func (s *outcomeStore) delete(t *testing.T, id string) {
	t.Helper()
	a := mustLoad(t, s.fresh, id)
	require.NoError(t, s.rival.Delete(t.Context(), id, a.Version, journal.RemoveOptions{}))
}

// interfere does what other processes do during a decision, and reports whether they do anything.
func (s *outcomeStore) interfere(t *testing.T, c cell, id string, decision int) bool {
	t.Helper()
	s.armed.Store(false)
	defer s.armed.Store(true)
	switch {
	case c.incident == rivalAlways:
		endow(t, s.rival, id, othersAmount)
	case decision > 1:
		return false
	case c.incident == rivalOnce, c.incident == rivalOneAttempt:
		endow(t, s.rival, id, othersAmount)
	case c.incident == rivalDeletes:
		s.delete(t, id)
	case (c.incident == rivalExecutes || c.incident == rivalReusesID) && c.decision == nothing:
		s.executeCommand(t, c, id, nil)
	case c.incident == rivalExecutes, c.incident == rivalReusesID:
		s.executeCommand(t, c, id, Events{Deposited{ownAmount}})
	default:
		return false
	}
	return true
}

// inject injects the faults of an incident, which happen only to requests of the call. Struck
// reports whether the first of them has happened.
func (s *outcomeStore) inject(incident string) (struck func() bool, remove func()) {
	var all []*dynamotest.Injection
	struck = func() bool { return len(all) > 0 && all[0].Fired() > 0 }
	on := func(fault dynamotest.Fault, operations []string, when func() bool, more ...dynamotest.When) {
		matching := dynamotest.Matching(func(string, any) bool { return s.armed.Load() && when() })
		all = append(all, s.db.Inject(fault, append(more, dynamotest.On(operations...), matching)...))
	}
	commits, reads := []string{"PutItem", "TransactWriteItems"}, []string{"GetItem", "Query", "BatchGetItem", "TransactGetItems"}
	always := func() bool { return true }
	switch incident {
	case replyLost, hiddenWritten, unreadable:
		on(dynamotest.LoseReply(), commits, always, dynamotest.Times(1))
	case hiddenUnwritten:
		on(dynamotest.CutConnection(), commits, always, dynamotest.Times(1))
	case writesThrottled:
		on(dynamotest.Throttle(), commits, always)
	case writesDenied:
		on(dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException"}), commits, always)
	case readsThrottled:
		on(dynamotest.Throttle(), reads, always)
	}
	switch incident {
	case hiddenWritten, hiddenUnwritten:
		on(dynamotest.CutConnection(), reads, struck, dynamotest.Times(1))
	case unreadable:
		on(dynamotest.CutConnection(), reads, struck)
	}
	return struck, func() {
		for _, i := range all {
			i.Remove()
		}
	}
}

// invoke calls Execute, or a Transaction with one participant. Expected is -1 for any version.
func (c cell) invoke(
	ctx context.Context, r *repository.Repository[Account], id string, expected int,
	decide func(Account) (Events, error), options ...repository.Option,
) (repository.Aggregate[Account], error) {
	var version repository.Option
	if expected >= 0 {
		version = repository.WithExpectedVersion(uint64(expected))
	}
	if c.call == byExecute {
		return r.Execute(ctx, id, decide, append(options, version)...)
	}
	var all repository.Transaction
	p := r.AddTo(&all, id, version)
	err := all.Execute(ctx, func() error {
		events, err := decide(p.State)
		p.Append(events...)
		return err
	}, options...)
	return p.Aggregate(), err
}
