package main

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/catalogue/cataloguetest"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/outbound"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/forward"
)

func TestTheCatalogueIsUpToDate(t *testing.T) {
	t.Parallel()
	outside, err := forward.New(forward.Config{Publisher: gochannel.NewGoChannel(gochannel.Config{}, nil)}, outbound.Mappings()...)
	require.NoError(t, err)
	cataloguetest.Check(t, "events", catalogue.Config{
		Title:       "Order history",
		Definitions: []aggregate.AnyDefinition{order.Definition, ticket.Definition, delivery.Definition},
		Channels:    catalogue.Forwarded(outside.Messages()),
	})
}
