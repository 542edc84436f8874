package repository_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// An account is removed permanently. The version is that of the state on which the decision to
// delete was based.
func ExampleRepository_Delete() {
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
	account, err := accounts.Execute(ctx, "42", Deposit(100))
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := account.Version
	if _, err := accounts.Execute(ctx, "42", Deposit(1)); err != nil { // another writer
		fmt.Println(err)
		return
	}

	// With journal.RemoveOptions{After: ...}, consumer groups that lag behind have time to read the
	// events.
	err = accounts.Delete(ctx, "42", seen, journal.RemoveOptions{})
	fmt.Println(errors.Is(err, journal.ErrConflict))

	account, err = accounts.Load(ctx, "42")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(accounts.Delete(ctx, "42", account.Version, journal.RemoveOptions{}))
	_, err = accounts.Load(ctx, "42")
	fmt.Println(err != nil)

	// Output:
	// true
	// <nil>
	// true
}

// Old events of a long history are removed, up to the latest snapshot.
func ExampleRepository_Truncate() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := repository.New(j, Accounts, repository.Config{Snapshots: repository.Every(10)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 12 {
		if _, err := accounts.Execute(ctx, "42", Deposit(1)); err != nil {
			fmt.Println(err)
			return
		}
	}

	err = accounts.Truncate(ctx, "42", 12, journal.RemoveOptions{}) // the snapshot is of event 10
	fmt.Println(errors.Is(err, journal.ErrNotCovered))
	fmt.Println(accounts.Truncate(ctx, "42", 11, journal.RemoveOptions{}))
	account, err := accounts.Load(ctx, "42")
	fmt.Println(account.State.Balance, err)

	// Output:
	// true
	// <nil>
	// 12 <nil>
}
