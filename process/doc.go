// Package process runs process managers: they take events of several aggregates, remember what has happened, and decide which commands
// follow and what is to be done when something does not happen in time.
//
//	var definition = process.Define(sagas, // an aggregate of its own: state and events
//		process.On(
//			func(e OrderPlaced, _ process.Input) string { return e.Order }, // which process
//			func(s Saga, e OrderPlaced, _ process.Input) (process.Step[Saga], error) {
//				return process.Step[Saga]{
//					Events:   aggregate.Events[Saga]{Begun{e.Total}},
//					Commands: []any{ReserveCredit{e.Order, e.Total}},
//					Timeouts: []process.Timeout{{Name: "credit", After: time.Minute}},
//				}, nil
//			}).Starts(),
//		process.OnTimeout("credit", ...),
//	).OverWhen(func(s Saga) bool { return s.Outcome != "" })
//
//	manager, err := process.New(j, client, definition, process.Config{Publisher: p, GeneratePublishTopic: topics})
//	router.AddConsumerHandler("order-saga", "order", sub, manager.Handle)
//	go manager.Run(ctx) // timeouts
//
// # What is stored
//
// A process is an aggregate in the journal, of the type that its definition names: other groups can subscribe to its events. A reaction is pure, as a
// decision is. What it returns, a [Step], is stored in one transaction: its events, its commands and timeouts as rows of [Config].Table, and the
// id of the input, under the condition that nothing else has happened to the process since it was loaded. So a step happens once,
// however often its input comes ([journal.Config].CommandRetention bounds how much later), and inputs that come side by side are taken one after the other.
// An input that leads to nothing leaves no trace: if it comes again, the reaction sees the state as it is then.
//
// # Commands
//
// When the step is stored its commands go out, in their order, and the input is acked. If the program ends between the two, they go out when the input comes
// again, or after [Config].RetryAfter, whatever is first. So they are sent at least once, and each always has the same UUID, which is made of the
// process, the id of the input and the command's place in the step. Who handles a command gives this UUID to repository.CommandID, which makes
// it take effect once:
//
//	accounts.Execute(ctx, cmd.Account, Reserve(cmd.Total), repository.CommandID(cqrs.OriginalMessageFromCtx(ctx).UUID))
//
// Commands carry the correlation id of their input, the id of the input as causation id, and the id of the process as aggregate id, so that
// on a topic of package publisher those of one process stay in order.
//
// Commands of different steps may overtake each other: the inputs of a process come side by side, and each sends its own.
//
// # Timeouts
//
// A timeout is set, moved and cancelled by its name, with the step. [Manager.Run] looks every [Config].PollInterval for what is due; it fires as an
// input whose id stays the same, so its step happens once, also if several managers find it, one of them stalls, or a program ends in the middle. One
// that is due while no manager runs fires when one does. One whose process is over, or was deleted, is dropped. A timeout that comes when
// it was cancelled or moved by another input at the same moment does nothing.
//
// # The end
//
// A process is over when [Definition.OverWhen] says so of its state. What comes for it later is passed over and counted. Its events stay in the journal.
//
// # Errors
//
// A reaction's error, or that of the publisher, is returned by [Manager.Handle]: the message is nacked and comes again, and only its aggregate
// waits. See subscriber.Config.Failures for what fails for ever. A timeout that fails is logged and fires again after [Config].RetryAfter, for ever; so are commands that
// were stored and cannot be sent. [Stats].Failed counts it, and the row tells how often and why.
//
// # What is pending
//
// A [Backlog] shows the timeouts that are set and the commands that are not sent, of all managers that share a table. It needs
// none of their definitions, and has one tried again at once, or dropped.
//
// # Cost
//
// In DynamoDB's units, for items up to 1 KB, indexes included. A step with one event takes one read unit and nine write units; each further event
// four; the commands of a step five together; a timeout that is set or cancelled three; one that fires six; an attempt at either that fails four. Idle: half a read unit for each queue
// and PollInterval and running manager, which is 1,800 an hour with the defaults. An input that is passed over costs the load and a read unit that tells whether it was
// handled before, or nothing if its type has no reaction. A step is two round trips; with commands one more, and those of the publisher. docs/process.md has the parts.
package process
