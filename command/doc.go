// Package command executes the commands of Watermill's cqrs component on aggregates:
//
//	processor.AddHandlers(command.Handler("place-order", orders,
//		func(c *PlaceOrder) (string, aggregate.Decision[Order]) { return c.Order, c.decide },
//	))
//
// With [Handler] each command takes effect once, its events carry the id of the command as their
// causation id, and a command that is refused is not delivered again. The messages may come from
// any Pub/Sub of Watermill. docs/guides/cqrs.md says how to set up the bus and the processor, which
// consumer group to choose, and what each costs.
package command
