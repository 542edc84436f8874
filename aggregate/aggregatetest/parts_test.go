package aggregatetest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
)

// transfer returns a decision over two wallets.
func transfer(from, to *aggregate.Part[Wallet], amount int) func() error {
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
	parts := aggregatetest.Parts{from, to, counter}

	parts.When(transfer(from.Part(), to.Part(), 30))
	from.Then(Withdrawn{"EUR", 30})
	to.Then(Deposited{Currency: "EUR", Amount: 30})
	counter.ThenNothing()

	parts.When(transfer(from.Part(), to.Part(), 71)).ThenError(errInsufficientFunds)
	parts.When(transfer(to.Part(), from.Part(), 31)).ThenErrorFunc(func(t testing.TB, err error) {
		t.Helper()
		assert.ErrorContains(t, err, "insufficient")
	})
	parts.When(func() error {
		assert.EqualValues(t, 2, from.Part().Version)
		counter.Part().Append(did{"look"})
		return transfer(from.Part(), to.Part(), 70)()
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
			aggregatetest.Parts{from, to}.When(transfer(from.Part(), to.Part(), 1))
			to.ThenNothing()
		}, "insufficient funds"},
		"another event": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			aggregatetest.Parts{from, to}.When(transfer(from.Part(), to.Part(), 1))
			to.Then(Deposited{Currency: "EUR", Amount: 2})
		}, "-   Amount:   2,\n+   Amount:   1,"},
		"a decision that is not pure": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			amount := 0
			aggregatetest.Parts{from, to}.When(func() error {
				amount++
				return transfer(from.Part(), to.Part(), amount)()
			})
		}, "the decision is not pure"},
		"a decision that changes a state": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			aggregatetest.Parts{to, from}.When(func() error {
				from.Part().State.Balances["EUR"] = 0
				return nil
			})
		}, "the decision changed the state it was given"},
		"an acceptance where a refusal is expected": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			aggregatetest.Parts{from, to}.When(transfer(from.Part(), to.Part(), 1)).ThenError(errFrozen)
		}, "expected a refusal"},
		"a scenario that is not among the parts": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			aggregatetest.Parts{from}.When(transfer(from.Part(), to.Part(), 1))
		}, "not among the Parts of When"},
		"an expectation of a scenario that is not among the parts": {func(t testing.TB) {
			from, to := aggregatetest.Given(t, Wallets, funds), aggregatetest.Given(t, Wallets)
			aggregatetest.Parts{from}.When(transfer(from.Part(), to.Part(), 1))
			to.Then(Deposited{Currency: "EUR", Amount: 1})
		}, "not among the Parts of When"},
		"a scenario twice": {func(t testing.TB) {
			from := aggregatetest.Given(t, Wallets, funds)
			aggregatetest.Parts{from, from}.When(func() error { return nil })
		}, "twice"},
		"no decision": {func(t testing.TB) {
			aggregatetest.Parts{aggregatetest.Given(t, Wallets)}.When(nil)
		}, "the decision is nil"},
	} {
		assert.Contains(t, failure(t, test.scenario), test.want, name)
	}
}
