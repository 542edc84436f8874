package aggregate_test

import (
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
)

// A bank account, the aggregate that the tests of this package share.

type Account struct {
	Owner   string
	Balance int
	Tags    []string
}

type Opened struct{ Owner string }

func (Opened) EventType() string  { return "account.opened.v1" }
func (e Opened) Apply(a *Account) { a.Owner = e.Owner }

type Deposited struct{ Amount int }

func (Deposited) EventType() string  { return "account.deposited.v1" }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }

type Withdrawn struct{ Amount int }

func (Withdrawn) EventType() string  { return "account.withdrawn.v1" }
func (e Withdrawn) Apply(a *Account) { a.Balance -= e.Amount }

// Tagged is used as a pointer.
type Tagged struct{ Tag string }

func (*Tagged) EventType() string  { return "account.tagged.v1" }
func (e *Tagged) Apply(a *Account) { a.Tags = append(a.Tags, e.Tag) }

var Accounts = aggregate.Define[Account]("account", Opened{}, Deposited{}, Withdrawn{}, &Tagged{})

var ErrInsufficientFunds = errors.New("insufficient funds")
