package protobuf_test

import (
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/protobuf"
	"github.com/millrace-dev/millrace/aggregate/protobuf/internal/bankpb"
)

// The state and the events of Account are wrappers around messages of another package.

type Account struct{ *bankpb.Account }

type Deposited struct{ *bankpb.Deposited }

func (Deposited) EventType() string { return "account.deposited.v2" }

func (e Deposited) Apply(a *Account) {
	a.start()
	a.Balances[e.GetCurrency()] += e.GetAmount()
	a.LastDeposit = e.Deposited
}

// Withdrawn is defined as a pointer.
type Withdrawn struct{ *bankpb.Withdrawn }

func (*Withdrawn) EventType() string { return "account.withdrawn.v1" }

func (e *Withdrawn) Apply(a *Account) {
	a.start()
	a.Balances[e.GetCurrency()] -= e.GetAmount()
}

// Viewed is not a message, so the other codec encodes it.
type Viewed struct{ By string }

func (Viewed) EventType() string { return "account.viewed.v1" }
func (Viewed) Apply(*Account)    {}

func (a *Account) start() {
	if a.Account == nil {
		a.Account = &bankpb.Account{}
	}
	if a.Balances == nil {
		a.Balances = map[string]int64{}
	}
}

var Accounts = aggregate.Define[Account]("account", Deposited{}, &Withdrawn{}, Viewed{}).WithCodec(protobuf.Codec{})

// Ledgers has a plain struct as its state, and messages that are events themselves.
var Ledgers = aggregate.Define[bankpb.Ledger]("ledger", &bankpb.Withdrawn{}, &bankpb.Closed{}).WithCodec(protobuf.Codec{})

var errInsufficientFunds = errors.New("insufficient funds")

func deposited(amount int64, currency string) Deposited {
	return Deposited{&bankpb.Deposited{Amount: amount, Currency: currency}}
}

func withdraw(amount int64, currency string) aggregate.Decision[Account] {
	return func(a Account) (aggregate.Events[Account], error) {
		if a.GetBalances()[currency] < amount {
			return nil, errInsufficientFunds
		}
		return aggregate.Events[Account]{&Withdrawn{&bankpb.Withdrawn{Amount: amount, Currency: currency}}}, nil
	}
}
