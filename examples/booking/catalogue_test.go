package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/examples/booking/checkout"
	"github.com/millrace-dev/millrace/examples/booking/payment"
	"github.com/millrace-dev/millrace/examples/booking/show"
)

func TestACatalogueDescribesAllEvents(t *testing.T) {
	t.Parallel()
	process := checkout.Define(time.Minute)
	c, err := catalogue.New(catalogue.Config{
		Title:       "Booking",
		Definitions: []aggregate.AnyDefinition{show.Definition, payment.Definition, process.Aggregate()},
	})
	require.NoError(t, err)
	for aggregateType, eventTypes := range map[string][]string{
		show.Definition.Type():    show.Definition.EventTypes(),
		payment.Definition.Type(): payment.Definition.EventTypes(),
		process.Type():            {"checkout.began.v1"},
	} {
		require.NotEmpty(t, eventTypes)
		for _, eventType := range eventTypes {
			_, ok := c.Event(aggregateType, eventType)
			assert.True(t, ok, eventType)
		}
	}
	dir := t.TempDir()
	notes, err := c.Write(dir)
	require.NoError(t, err)
	assert.Empty(t, notes)
	difference, err := c.Compare(dir)
	require.NoError(t, err)
	assert.Empty(t, difference)
}
