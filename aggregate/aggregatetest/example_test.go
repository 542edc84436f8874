package aggregatetest_test

import (
	"fmt"
	"testing"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
)

// printer stands in for *testing.T, which an example does not have.
type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Cleanup(func())                    {}
func (printer) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func Example() {
	// A test passes its *testing.T.
	t := printer{}

	aggregatetest.Given(t, Wallets, Deposited{Currency: "EUR", Amount: 100}).
		When(Withdraw("EUR", 30)).Then(Withdrawn{"EUR", 30}).
		When(Withdraw("EUR", 71)).ThenError(errInsufficientFunds).
		When(Withdraw("EUR", 70)).Then(Withdrawn{"EUR", 7})

	// Output:
	// When 3 (after 2 events): the events are not as expected (-want +got)
	//   aggregatetest_test.Withdrawn{
	//     Currency: "EUR",
	// -   Amount:   7,
	// +   Amount:   70,
	//   }
}

func ExampleScenario_Stored() {
	// A test passes its *testing.T.
	t := printer{}

	wallets := Wallets.WithUpcasters(aggregate.Upcast("wallet.filled.v0", func(old struct{ Cents int }) Deposited {
		return Deposited{Currency: "EUR", Amount: old.Cents / 100}
	}))
	aggregatetest.Given(t, wallets).
		Stored("wallet.filled.v0", `{"Cents":500}`).
		ThenState(Wallet{Balances: map[string]int{"EUR": 4}})

	// Output:
	// Given: the state is not as expected (-want +got)
	//   aggregatetest_test.Wallet{
	// -   Balances: map[string]int{"EUR": 4},
	// +   Balances: map[string]int{"EUR": 5},
	//     Notes:    nil,
	//     LastAt:   s"0001-01-01 00:00:00 +0000 UTC",
	//   }
}

func ExampleTransaction() {
	// A test passes its *testing.T.
	t := printer{}

	from := aggregatetest.Given(t, Wallets, Deposited{Currency: "EUR", Amount: 100})
	to := aggregatetest.Given(t, Wallets)
	pay := func(amount int) func() error { return transfer(from.Participant(), to.Participant(), amount) }

	aggregatetest.Transaction{from, to}.
		When(pay(71)).
		When(pay(30)).ThenError(errInsufficientFunds)
	to.ThenState(Wallet{Balances: map[string]int{"EUR": 70}})

	// Output:
	// When 2 (after 1 event): the state is not as expected (-want +got)
	//   aggregatetest_test.Wallet{
	// -   Balances: map[string]int{"EUR": 70},
	// +   Balances: map[string]int{"EUR": 71},
	//     Notes:    nil,
	//     LastAt:   s"0001-01-01 00:00:00 +0000 UTC",
	//   }
}
