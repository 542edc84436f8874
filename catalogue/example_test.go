package catalogue_test

import (
	"fmt"
	"log"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/catalogue"
)

type Account struct{ Balance int }

type Deposited struct {
	Amount int    `json:"amount" description:"In cents."`
	Note   string `json:"note,omitzero"`
}

func (Deposited) EventType() string  { return "account.deposited.v1" }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }

var Accounts = aggregate.Define[Account]("account", Deposited{})

// The catalogue holds a JSON Schema of each event. catalogue.Write writes it into files.
func ExampleNew() {
	c, err := catalogue.New(catalogue.Config{
		Title:       "Bank",
		Definitions: []aggregate.AnyDefinition{Accounts},
	})
	if err != nil {
		log.Fatal(err)
	}
	deposited, _ := c.Event("account", "account.deposited.v1")
	fmt.Print(string(deposited.Schema))
	// Output:
	// {
	//   "$schema": "https://json-schema.org/draft/2020-12/schema",
	//   "title": "account.deposited.v1",
	//   "x-millrace": {
	//     "kind": "event",
	//     "aggregate": "account",
	//     "event": "account.deposited.v1",
	//     "codec": "json",
	//     "goType": "catalogue_test.Deposited"
	//   },
	//   "type": "object",
	//   "properties": {
	//     "amount": {
	//       "description": "In cents.",
	//       "type": "integer",
	//       "format": "int64"
	//     },
	//     "note": {
	//       "type": "string"
	//     }
	//   },
	//   "required": [
	//     "amount"
	//   ]
	// }
}
