package repository_test

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/repository"
)

// A tool shows the changes that each event has made. It does not know the state type.
func ExampleRepository_States() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := repository.New(j, Accounts, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		if _, err := accounts.Execute(ctx, "42", Deposit(10)); err != nil {
			fmt.Println(err)
			return
		}
	}

	var tool repository.AnyRepository = accounts
	for state, err := range tool.States(ctx, "42", repository.StatesQuery{From: 2}) {
		switch {
		case err != nil:
			fmt.Println(err)
		case state.Record == nil:
			fmt.Println("before:", state.State)
		default:
			fmt.Println(state.Record.Number, state.Record.EventType, state.State)
		}
	}

	// Output:
	// before: {10}
	// 2 account.deposited.v1 {20}
	// 3 account.deposited.v1 {30}
}
