// Package command executes the commands of Watermill's cqrs component on aggregates:
//
//	processor.AddHandlers(command.Handler("place-order", orders,
//		func(c *PlaceOrder) (string, aggregate.Decision[Order]) { return c.Order, c.decide },
//	))
//
// [Handler] is what most handlers of commands need: each command takes effect once, its events say
// what they follow from, and a command that is refused does not come again. The messages may come
// from any Pub/Sub of Watermill. docs/cqrs.md says how to set up the bus and the processor, which
// consumer group to choose, and what each costs.
package command
