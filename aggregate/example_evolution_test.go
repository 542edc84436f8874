package aggregate_test

import (
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// replay prints the state of an account with a balance of 100 after one stored event.
func replay(accounts aggregate.Definition[Account], eventType, payload string) {
	if err := accounts.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	account := Account{Balance: 100}
	if err := accounts.Replay(&account, eventType, []byte(payload)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("balance:", account.Balance)
}

func ExampleUpcast() {
	// Amounts were once cents, under another event type. The Go type has the old fields only.
	type paidIn struct{ Cents int }
	accounts := Accounts.WithUpcasters(
		aggregate.Upcast("account.paid_in.v1", func(old paidIn) Deposited { return Deposited{Amount: old.Cents / 100} }),
	)
	replay(accounts, "account.paid_in.v1", `{"Cents":500}`)

	// Output: balance: 105
}

func ExampleUpcast_chain() {
	// From v1 to v2 to v3, the current account.deposited.v1. Each step knows only its neighbours.
	accounts := Accounts.WithUpcasters(
		aggregate.Upcast("account.paid_in.v1", func(old struct{ Cents int }) DepositedHalves {
			return DepositedHalves{Halves: old.Cents / 50}
		}),
		aggregate.Upcast("account.deposited.v0b", func(old DepositedHalves) Deposited { return Deposited{old.Halves / 2} }),
	)
	replay(accounts, "account.paid_in.v1", `{"Cents":500}`)
	replay(accounts, "account.deposited.v0b", `{"Halves":10}`)

	// Output:
	// balance: 105
	// balance: 105
}

func ExampleSplit() {
	type transferred struct{ Amount, Fee int }
	accounts := Accounts.WithUpcasters(
		aggregate.Split("account.transferred.v1", func(old transferred) (aggregate.Events[Account], error) {
			events := aggregate.Events[Account]{Withdrawn{old.Amount}}
			if old.Fee > 0 {
				events = append(events, Withdrawn{old.Fee})
			}
			return events, nil
		}),
	)
	replay(accounts, "account.transferred.v1", `{"Amount":30,"Fee":1}`)

	// Output: balance: 69
}

func ExampleDrop() {
	accounts := Accounts.WithUpcasters(aggregate.Drop("account.viewed.v1"))
	replay(accounts, "account.viewed.v1", `{"By":"Ada"}`)

	// Output: balance: 100
}

func ExampleUpcaster_WithCodec() {
	// The definition has another codec now. Older events keep their old names, and the old codec
	// reads them.
	accounts := Accounts.WithCodec(gobCodec{}).WithUpcasters(
		aggregate.Upcast("account.paid_in.v1", func(old struct{ Amount int }) Deposited { return Deposited(old) }).WithCodec(aggregate.JSON),
	)
	replay(accounts, "account.paid_in.v1", `{"Amount":5}`)

	// Output: balance: 105
}

func ExampleDefinition_Upcast() {
	accounts := Accounts.WithUpcasters(
		aggregate.Upcast("account.paid_in.v1", func(old struct{ Cents int }) Deposited { return Deposited{old.Cents / 100} }),
	)
	events, err := accounts.Upcast(aggregate.EncodedEvent{Type: "account.paid_in.v1", Payload: []byte(`{"Cents":500}`)})
	for _, e := range events {
		fmt.Printf("%s %s\n", e.Type, e.Payload)
	}
	fmt.Println(err)

	// Output:
	// account.deposited.v1 {"Amount":5}
	// <nil>
}
