// Package command executes the commands of Watermill's cqrs component on aggregates, each command
// once.
//
//	err := processor.AddHandlers(command.Handler("place-order", orders,
//		func(p *PlaceOrder) (string, aggregate.Decision[Order]) { return p.Order, p.Decide },
//	))
//
// A command is a message with the intent to change an aggregate. A decision is a function that
// returns the events of a command, or an error to refuse it. With [Handler] each command takes
// effect once. Its events carry the id of the command as their causation id. A refused command is
// not delivered again. [TransactionHandler] does the same for decisions over several aggregates.
// The messages may come from any Pub/Sub of Watermill. docs/guides/cqrs.md says how to set up the
// bus and the processor, which consumer group to choose, and what each costs.
package command
