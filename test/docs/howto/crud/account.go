// Package crud is the code of docs/howto/migrate-from-crud.md. It moves accounts from an SQL table,
// which a running application changes, to a journal.
package crud

import (
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
)

// ErrNotEnough refuses a withdrawal.
var ErrNotEnough = errors.New("the balance is too low")

type (
	// Account is the state that decisions need.
	Account struct {
		Open    bool
		Balance int
	}
	// Imported is the first event of an account that the table had.
	Imported struct{ Balance int }
	// Opened is the first event of a new account.
	Opened struct{}
	// Deposited adds to the balance.
	Deposited struct{ Amount int }
	// Withdrawn subtracts from the balance.
	Withdrawn struct{ Amount int }
	// Events are events of an account.
	Events = aggregate.Events[Account]
	// Decision decides on an account.
	Decision = aggregate.Decision[Account]
)

func (Imported) EventType() string   { return "account.imported.v1" }
func (Opened) EventType() string     { return "account.opened.v1" }
func (Deposited) EventType() string  { return "account.deposited.v1" }
func (Withdrawn) EventType() string  { return "account.withdrawn.v1" }
func (e Imported) Apply(a *Account)  { a.Open, a.Balance = true, e.Balance }
func (Opened) Apply(a *Account)      { a.Open = true }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }
func (e Withdrawn) Apply(a *Account) { a.Balance -= e.Amount }

// Accounts defines the accounts. Their topic is "account".
var Accounts = aggregate.Define[Account]("account", Imported{}, Opened{}, Deposited{}, Withdrawn{})

// Import returns the first event of an account, unless it has one.
func Import(row Row) Decision {
	return func(a Account) (Events, error) {
		if a.Open {
			return nil, nil
		}
		return Events{Imported{row.Balance}}, nil
	}
}

// Withdraw decides as the WHERE clause of the table did.
func Withdraw(amount int) Decision {
	return func(a Account) (Events, error) {
		if a.Balance < amount {
			return nil, ErrNotEnough
		}
		return Events{Withdrawn{amount}}, nil
	}
}
