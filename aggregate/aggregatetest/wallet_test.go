package aggregatetest_test

import (
	"errors"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Wallet holds several currencies. Its state has a map, one event is a pointer and one has a time.

type Wallet struct {
	Balances map[string]int
	Notes    []string
	LastAt   time.Time
}

type Deposited struct {
	Currency string
	Amount   int
	At       time.Time
}

func (Deposited) EventType() string { return "wallet.deposited.v1" }
func (e Deposited) Apply(w *Wallet) {
	if w.Balances == nil {
		w.Balances = map[string]int{}
	}
	w.Balances[e.Currency] += e.Amount
	w.LastAt = e.At
}

type Withdrawn struct {
	Currency string
	Amount   int
}

func (Withdrawn) EventType() string { return "wallet.withdrawn.v1" }
func (e Withdrawn) Apply(w *Wallet) { w.Balances[e.Currency] -= e.Amount }

type Noted struct{ Text string }

func (*Noted) EventType() string { return "wallet.noted.v1" }
func (e *Noted) Apply(w *Wallet) { w.Notes = append(w.Notes, e.Text) }

var Wallets = aggregate.Define[Wallet]("wallet", Deposited{}, Withdrawn{}, &Noted{})

var (
	errInsufficientFunds = errors.New("insufficient funds")
	errFrozen            = errors.New("the wallet is frozen")
)

func Withdraw(currency string, amount int) aggregate.Decision[Wallet] {
	return func(w Wallet) (aggregate.Events[Wallet], error) {
		if w.Balances[currency] < amount {
			return nil, &shortfall{missing: amount - w.Balances[currency]}
		}
		return produce(Withdrawn{currency, amount})(w)
	}
}

// shortfall is a typed refusal for which errors.Is(err, errInsufficientFunds) is true.
type shortfall struct{ missing int }

func (e *shortfall) Error() string { return "insufficient funds" }
func (e *shortfall) Unwrap() error { return errInsufficientFunds }

func produce(events ...aggregate.Event[Wallet]) aggregate.Decision[Wallet] {
	return func(Wallet) (aggregate.Events[Wallet], error) { return events, nil }
}

func refuse(err error) aggregate.Decision[Wallet] {
	return func(Wallet) (aggregate.Events[Wallet], error) { return nil, err }
}
