package protobuf_test

import (
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/protobuf"
	"github.com/millrace-dev/millrace/aggregate/protobuf/internal/bankpb"
)

func Example() {
	// type Account struct{ *bankpb.Account }
	//
	// type Deposited struct{ *bankpb.Deposited }
	//
	// func (Deposited) EventType() string { return "account.deposited.v2" }
	// func (e Deposited) Apply(a *Account) { ... }
	accounts := aggregate.Define[Account]("account", Deposited{}).WithCodec(protobuf.Codec{})
	if err := accounts.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	encoded, err := accounts.Encode(Deposited{&bankpb.Deposited{Amount: 5, Currency: "EUR"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %x\n", encoded.Type, encoded.Payload)

	var account Account
	err = accounts.Replay(&account, encoded.Type, encoded.Payload)
	fmt.Println(account.GetBalances(), err)

	// Output:
	// account.deposited.v2 08051203455552
	// map[EUR:5] <nil>
}

// An aggregate whose events were JSON changes to Protocol Buffers. New events have new names, and
// older events are read as JSON.
func ExampleCodec_fromJSON() {
	type depositedJSON struct{ Amount int64 }
	accounts := aggregate.Define[Account]("account", Deposited{}).
		WithCodec(protobuf.Codec{}).
		WithUpcasters(aggregate.Upcast("account.deposited.v1", func(old depositedJSON) Deposited {
			return Deposited{&bankpb.Deposited{Amount: old.Amount, Currency: "EUR"}}
		}).WithCodec(aggregate.JSON))

	var account Account
	err := accounts.Replay(&account, "account.deposited.v1", []byte(`{"Amount":5}`))
	fmt.Println(account.GetBalances(), err)

	// Output: map[EUR:5] <nil>
}
