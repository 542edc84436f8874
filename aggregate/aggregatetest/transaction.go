package aggregatetest

import (
	"slices"
	"testing"

	"github.com/millrace-dev/millrace/aggregate"
)

// Participant returns the aggregate of the scenario as a participant of a decision over several
// aggregates; see [Transaction]. Its ID has a Type and no Value. Set the Value if the decision uses
// it.
func (s *Scenario[S]) Participant() *aggregate.Participant[S] { return &s.participant }

// Transaction lists the scenarios of the aggregates that one decision changes:
//
//	from := aggregatetest.Given(t, Accounts, Deposited{100})
//	to := aggregatetest.Given(t, Accounts)
//	aggregatetest.Transaction{from, to}.When(func() error {
//		return Transfer(from.Participant(), to.Participant(), 30)
//	})
//	from.Then(Withdrawn{30})
//	to.Then(Deposited{30})
type Transaction []AnyScenario

// AnyScenario is a [*Scenario] of any state type.
type AnyScenario interface {
	test() testing.TB
	hasFailed() bool
	failOnRefusal() bool
	fail(format string, args ...any)
	begin() bool
	prepare(run int)
	collect(run int, refusal error)
	end()
	leaveRefusal()
	expectError(target error)
	expectErrorFunc(check func(t testing.TB, err error))
}

// When makes a decision over the participants, on their states so far. The events that it appends
// become part of the histories. When checks the decision as [Scenario.When] does. If a decision
// appends to a scenario that is not among the participants, the test fails at its end.
func (tx Transaction) When(decide func() error) Transaction {
	if len(tx) == 0 {
		panic("aggregatetest: Transaction has no scenarios, so there is no test to fail")
	}
	tx[0].test().Helper()
	if decide == nil {
		tx[0].fail("the decision is nil")
		return tx
	}
	for i, p := range tx {
		if slices.Contains(tx[:i], p) {
			p.fail("the scenario is among the participants twice: use one for each aggregate")
			return tx
		}
	}
	for _, p := range tx {
		if p.hasFailed() || p.failOnRefusal() || !p.begin() {
			return tx
		}
	}
	for run := range 3 {
		for _, p := range tx {
			p.prepare(run)
		}
		refusal := decide()
		for _, p := range tx {
			p.collect(run, refusal)
		}
	}
	for i, p := range tx {
		if p.end(); p.hasFailed() {
			return tx
		}
		if i > 0 {
			p.leaveRefusal() // the test expects the refusal on the first participant
		}
	}
	return tx
}

// ThenError expects that the latest decision returned an error for which errors.Is(err, target) is
// true.
func (tx Transaction) ThenError(target error) Transaction {
	tx[0].test().Helper()
	tx[0].expectError(target)
	return tx
}

// ThenErrorFunc expects that the latest decision returned an error, and passes it to check. Check
// reports its failures to t.
func (tx Transaction) ThenErrorFunc(check func(t testing.TB, err error)) Transaction {
	tx[0].test().Helper()
	tx[0].expectErrorFunc(check)
	return tx
}

func (s *Scenario[S]) test() testing.TB { return s.t }
func (s *Scenario[S]) hasFailed() bool  { return s.failed }

func (s *Scenario[S]) prepare(run int) {
	s.participant = aggregate.Participant[S]{ID: s.participant.ID, State: s.states.Runs[run], Version: uint64(s.history.Len())}
}

func (s *Scenario[S]) collect(run int, refusal error) {
	s.runs[run] = outcome[S]{events: s.participant.Events, refusal: refusal}
	s.participant.Events = nil
}

// leaveRefusal marks the refusal as expected, since another scenario reports it if it is not.
func (s *Scenario[S]) leaveRefusal() { s.outcome.seen = true }

func (s *Scenario[S]) expectError(target error) {
	s.t.Helper()
	s.ThenError(target)
}

func (s *Scenario[S]) expectErrorFunc(check func(t testing.TB, err error)) {
	s.t.Helper()
	s.ThenErrorFunc(check)
}

// forgotten is the failure of a scenario to which a decision appended although the scenario was not
// among its [Transaction].
const forgotten = "a decision appended events to it, but it is not in the Transaction"
