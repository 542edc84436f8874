// Command catalogue is an application that writes the catalogue of its events.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"reflect"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/test/docs/howto/evolve"
)

// OrderPlaced is a message for other programs.
type OrderPlaced struct {
	OrderID string `json:"orderId"`
	Total   Cents  `json:"total" description:"In the currency of the order."`
	Note    string `json:"note,omitzero"`
}

// Cents encodes itself as text, such as 12.50.
type Cents int64

// MarshalJSON returns the amount as text.
func (c Cents) MarshalJSON() ([]byte, error) {
	return json.Marshal(fmt.Sprintf("%d.%02d", c/100, c%100))
}

// Events is the catalogue of the application.
var Events = catalogue.Config{
	Title:       "Orders",
	Version:     "1.4.0",
	Definitions: []aggregate.AnyDefinition{evolve.Orders},
	Channels: []catalogue.Channel{{
		Name:    "public-orders",
		Address: "shop.orders.public", // the topic at the broker
		Messages: []catalogue.Message{
			{Name: "OrderPlaced", Version: 1, Type: reflect.TypeFor[OrderPlaced]()},
		},
	}},
	As: map[reflect.Type]reflect.Type{reflect.TypeFor[Cents](): reflect.TypeFor[string]()},
}

//go:generate go run . -catalogue events

func main() {
	dir := flag.String("catalogue", "", "write the catalogue of events into a folder, and exit")
	flag.Parse()
	if *dir != "" {
		notes, err := catalogue.Write(*dir, Events)
		if err != nil {
			log.Fatal(err)
		}
		for _, note := range notes {
			log.Print(note)
		}
		return
	}
	// ... run the application
}
