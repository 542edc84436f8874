package aggregatetest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
)

// transfer returns a decision over two wallets.
func transfer(from, to *aggregate.Participant[Wallet], amount int) func() error {
	return func() error {
		if from.State.Balances["EUR"] < amount {
			return &shortfall{missing: amount - from.State.Balances["EUR"]}
		}
		from.Append(Withdrawn{"EUR", amount})
		to.Append(Deposited{Currency: "EUR", Amount: amount})
		return nil
	}
}

func TestScenariosOfSeveralAggregatesPass(t *testing.T) {
	t.Parallel()
	from, to := aggregatetest.Given(t, Wallets, Deposited{Currency: "EUR", Amount: 100}), aggregatetest.Given(t, Wallets)
	counter := aggregatetest.Given(t, Counters)
	tx := aggregatetest.Transaction{from, to, counter}

	tx.When(transfer(from.Participant(), to.Participant(), 30))
	from.Then(Withdrawn{"EUR", 30})
	to.Then(Deposited{Currency: "EUR", Amount: 30})
	counter.ThenNothing()

	tx.When(transfer(from.Participant(), to.Participant(), 71)).ThenError(errInsufficientFunds)
	tx.When(transfer(to.Participant(), from.Participant(), 31)).ThenErrorFunc(func(t testing.TB, err error) {
		t.Helper()
		assert.ErrorContains(t, err, "insufficient")
	})
	tx.When(func() error {
		assert.EqualValues(t, 2, from.Participant().Version)
		counter.Participant().Append(did{"look"})
		return transfer(from.Participant(), to.Participant(), 70)()
	})
	counter.Then(did{"look"})
	to.ThenState(Wallet{Balances: map[string]int{"EUR": 100}})
	from.When(Withdraw("EUR", 1)).ThenError(errInsufficientFunds)
}

func TestScenariosOfSeveralAggregatesFail(t *testing.T) {
	t.Parallel()
	funds := Deposited{Currency: "EUR", Amount: 100}
	for name, test := range map[string]struct {
		scenario func(t testing.TB)
		want     string
	}{
		"a refusal that no ThenError expects": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets), aggregatetest.Given(t, Wallets)
			aggregatetest.Transaction{from, to}.When(transfer(from.Participant(), to.Participant(), 1))
			to.ThenNothing()
		}, "insufficient funds"},
		"another event": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			aggregatetest.Transaction{from, to}.When(transfer(from.Participant(), to.Participant(), 1))
			to.Then(Deposited{Currency: "EUR", Amount: 2})
		}, "-   Amount:   2,\n+   Amount:   1,"},
		"a decision that is not pure": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			amount := 0
			aggregatetest.Transaction{from, to}.When(func() error {
				amount++
				return transfer(from.Participant(), to.Participant(), amount)()
			})
		}, "the decision is not pure"},
		"a decision that changes a state": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			aggregatetest.Transaction{to, from}.When(func() error {
				from.Participant().State.Balances["EUR"] = 0
				return nil
			})
		}, "the decision changed the state it was given"},
		"an acceptance where a refusal is expected": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			aggregatetest.Transaction{from, to}.When(transfer(from.Participant(), to.Participant(), 1)).ThenError(errFrozen)
		}, "expected a refusal"},
		"a scenario that is not among the participants": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			aggregatetest.Transaction{from}.When(transfer(from.Participant(), to.Participant(), 1))
		}, "not in the Transaction"},
		"an expectation of a scenario that is not among the participants": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			aggregatetest.Transaction{from}.When(transfer(from.Participant(), to.Participant(), 1))
			to.Then(Deposited{Currency: "EUR", Amount: 1})
		}, "not in the Transaction"},
		"a scenario twice": {func(t testing.TB) {
			from := aggregatetest.Given(t, Wallets, funds)
			aggregatetest.Transaction{from, from}.When(func() error { return nil })
		}, "twice"},
		"no decision": {func(t testing.TB) {
			aggregatetest.Transaction{aggregatetest.Given(t, Wallets)}.When(nil)
		}, "the decision is nil"},
	} {
		assert.Contains(t, failure(t, test.scenario), test.want, name)
	}
}
