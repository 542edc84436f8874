package aggregatetest_test

import (
	"fmt"
	"testing"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
)

// printer takes the place of *testing.T, which an example does not have.
type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Cleanup(func())                    {}
func (printer) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func Example() {
	t := printer{} // in a test, its *testing.T

	aggregatetest.Given(t, Wallets, Deposited{Currency: "EUR", Amount: 100}).
		When(Withdraw("EUR", 30)).Then(Withdrawn{"EUR", 30}).
		When(Withdraw("EUR", 71)).ThenError(errInsufficientFunds).
		When(Withdraw("EUR", 70)).Then(Withdrawn{"EUR", 7})

	// Output:
	// When 3 (after 2 events): event 1 differs at Amount: expected 7, got 70
	// expected 1 event
	//   1. wallet.withdrawn.v1 {"Currency":"EUR","Amount":7}
	// got 1 event
	//   1. wallet.withdrawn.v1 {"Currency":"EUR","Amount":70}
}

func ExampleScenario_Stored() {
	t := printer{} // in a test, its *testing.T

	wallets := Wallets.WithUpcasters(aggregate.Upcast("wallet.filled.v0", func(old struct{ Cents int }) Deposited {
		return Deposited{Currency: "EUR", Amount: old.Cents / 100}
	}))
	aggregatetest.Given(t, wallets).
		Stored("wallet.filled.v0", `{"Cents":500}`).
		ThenState(Wallet{Balances: map[string]int{"EUR": 4}})

	// Output:
	// Given: the state differs at Balances["EUR"]: expected 4, got 5
	// expected {Balances:map[EUR:4] Notes:[] LastAt:0001-01-01 00:00:00 +0000 UTC}
	// got {Balances:map[EUR:5] Notes:[] LastAt:0001-01-01 00:00:00 +0000 UTC}
}

func ExampleParts() {
	t := printer{} // in a test, its *testing.T

	from := aggregatetest.Given(t, Wallets, Deposited{Currency: "EUR", Amount: 100})
	to := aggregatetest.Given(t, Wallets)
	pay := func(amount int) func() error { return transfer(from.Part(), to.Part(), amount) }

	aggregatetest.Parts{from, to}.
		When(pay(71)).
		When(pay(30)).ThenError(errInsufficientFunds)
	to.ThenState(Wallet{Balances: map[string]int{"EUR": 70}})

	// Output:
	// When 2 (after 1 event): the state differs at Balances["EUR"]: expected 70, got 71
	// expected {Balances:map[EUR:70] Notes:[] LastAt:0001-01-01 00:00:00 +0000 UTC}
	// got {Balances:map[EUR:71] Notes:[] LastAt:0001-01-01 00:00:00 +0000 UTC}
}
