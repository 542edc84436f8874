package main

import (
	"testing"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/catalogue/cataloguetest"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/outbound"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
)

func TestTheCatalogueIsUpToDate(t *testing.T) {
	t.Parallel()
	cataloguetest.Check(t, "events", catalogue.Config{
		Title:       "Order history",
		Definitions: []aggregate.AnyDefinition{order.Definition, ticket.Definition, delivery.Definition},
		Channels:    catalogue.Forwarded(outbound.Mappings()...),
	})
}
