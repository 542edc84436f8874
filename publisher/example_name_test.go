package publisher_test

import (
	"fmt"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/publisher"
)

type OrderPlaced struct{ Total int }

func (OrderPlaced) EventType() string { return "order.placed.v1" }

type PlaceOrder struct{ Total int }

// Paid is an event whose content is a Protocol Buffers message of another package.
type Paid struct{ *wrapperspb.Int64Value }

func (Paid) EventType() string { return "order.paid.v1" }

// Events have the same names in Watermill's cqrs component as in the journal, if EventName is the
// GenerateName of the marshaler.
func ExampleEventName() {
	fmt.Println(publisher.EventName(OrderPlaced{}))
	fmt.Println(publisher.EventName(&OrderPlaced{}))
	fmt.Println(publisher.EventName(PlaceOrder{}), "has no EventType")

	// Output:
	// order.placed.v1
	// order.placed.v1
	// publisher_test.PlaceOrder has no EventType
}

// A message has the name of the event that wraps it, so that handlers can take the message.
func ExampleEventNames() {
	names := publisher.EventNames(OrderPlaced{}, Paid{})
	fmt.Println(names(&wrapperspb.Int64Value{}))
	fmt.Println(names(Paid{}))

	// Output:
	// order.paid.v1
	// order.paid.v1
}
