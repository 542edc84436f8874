package aggregate_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

func ExampleDefine() {
	// type Account struct { ... }
	//
	// type Deposited struct{ Amount int }
	//
	// func (Deposited) EventType() string  { return "account.deposited.v1" }
	// func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }
	accounts := aggregate.Define[Account]("account", Opened{}, Deposited{}, Withdrawn{})
	if err := accounts.Validate(); err != nil {
		fmt.Println(err)
		return
	}

	encoded, err := accounts.Encode(Deposited{Amount: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %s\n", encoded.Type, encoded.Payload)

	event, err := accounts.Decode(encoded.Type, encoded.Payload)
	if err != nil {
		fmt.Println(err)
		return
	}
	var account Account
	accounts.Apply(&account, event)
	fmt.Println("balance:", account.Balance)

	// Output:
	// account.deposited.v1 {"Amount":100}
	// balance: 100
}

func ExampleDecision() {
	withdraw := func(amount int) aggregate.Decision[Account] {
		return func(a Account) (aggregate.Events[Account], error) {
			if a.Balance < amount {
				return nil, ErrInsufficientFunds
			}
			return aggregate.Events[Account]{Withdrawn{amount}}, nil
		}
	}

	events, err := withdraw(30)(Account{Balance: 100})
	fmt.Println(events, err)

	events, err = withdraw(130)(Account{Balance: 100})
	fmt.Println(events, err)

	// Output:
	// [{30}] <nil>
	// [] insufficient funds
}

func ExampleDefinition_Validate() {
	err := aggregate.Define[Account]("", Deposited{}).Validate()
	fmt.Println(errors.As(err, new(*aggregate.DefinitionError)))
	fmt.Println(err)

	// Output:
	// true
	// invalid aggregate definition "": the aggregate type is empty: set a name
}

func ExampleDefinition_ID() {
	id, err := Accounts.ID("0001-2345")
	fmt.Println(id, err)

	_, err = Accounts.ID("")
	var invalid *aggregate.InvalidIDError
	if errors.As(err, &invalid) {
		fmt.Println(invalid.Reason)
	}

	// Output:
	// account-0001-2345 <nil>
	// the value is empty: use a value that names this aggregate alone
}

func ExampleContextWithMetadata() {
	ctx := aggregate.ContextWithMetadata(context.Background(), aggregate.Metadata{
		aggregate.CorrelationIDKey: "request-1",
	})
	ctx = aggregate.ContextWithMetadata(ctx, aggregate.Metadata{"tenant": "north"})

	metadata := aggregate.MetadataFromContext(ctx)
	fmt.Println(metadata.CorrelationID(), metadata["tenant"])

	// Output: request-1 north
}
