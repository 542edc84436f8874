// Package process runs process managers. A process takes events of several aggregates, remembers
// what has happened, and decides which commands follow and what to do when something does not
// happen in time.
//
//	var definition = process.Define(sagas, // an aggregate of its own: state and events
//		process.On(
//			func(e OrderPlaced, _ process.Input) string { return e.Order }, // which process
//			func(s Saga, e OrderPlaced, _ process.Input) (process.Step[Saga], error) {
//				return process.Record(Begun{e.Total}).
//					Send(ReserveCredit{e.Order, e.Total}).
//					SetTimeout("credit", time.Minute), nil
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
// A process is an aggregate in the journal, of the type that its definition names. Other groups can
// subscribe to its events. A reaction is a pure function, as a decision is. It returns a [Step],
// which is stored in one transaction: the events, the commands and timeouts as rows of
// [Config].Table, and the id of the input, under the condition that the process has not changed
// since it was loaded. So a step happens once, however often its input comes
// ([journal.Config].CommandRetention limits how much later). Concurrent inputs are handled one
// after the other. An input without a step is not recorded: if it comes again, the reaction gets
// the state at that time.
//
// # Commands
//
// After the step is stored its commands are sent in their order, and the input is acked. If the
// program ends between the two, they are sent when the input comes again, or after
// [Config].RetryAfter, whichever is first. So they are sent at least once, always with the same
// UUID, which is derived from the process, the id of the input and the command's place in the step.
// A handler passes this UUID to repository.CommandID, so that the command takes effect once:
//
//	accounts.Execute(ctx, cmd.Account, Reserve(cmd.Total), repository.CommandID(cqrs.OriginalMessageFromCtx(ctx).UUID))
//
// Commands carry the correlation id of their input, the id of the input as causation id, and the id
// of the process as aggregate id. So the commands of one process stay in order on a topic of
// package publisher.
//
// Commands of different steps may overtake each other: a process may get inputs concurrently, and
// each sends its own commands.
//
// # Timeouts
//
// A step sets, moves and cancels timeouts by their names. [Manager.Run] polls for timeouts that are
// due every [Config].PollInterval. A timeout fires as an input with an id that stays the same. So
// its step happens once, also if several managers find it, one of them stalls, or a program ends in
// the middle. A timeout that is due while no manager runs fires when one does. If its process is
// over, or was deleted, it is dropped. If another input cancels or moves it while it fires, it does
// nothing.
//
// # The end
//
// A process is over when the function of [Definition.OverWhen] returns true for its state. Later
// inputs are passed over and counted. Its events stay in the journal.
//
// # Errors
//
// [Manager.Handle] returns the error of a reaction or of the publisher: the message is nacked and
// comes again, and only its aggregate waits. See subscriber.Config.Failures for messages that fail
// forever. A timeout that fails is logged and fires again after [Config].RetryAfter, without a
// limit. So do stored commands that cannot be sent. [Stats].Failed counts these failures, and the
// row has their number and the last reason.
//
// # What is pending
//
// A [Backlog] lists the timeouts that are set and the commands that are not sent, of all managers
// that share a table. It needs none of their definitions. It also retries or drops one of them.
// [Backlog.Open] lists the processes that have begun and are not over.
//
// # Queues
//
// [Config].Queues spreads timeouts and stored commands over several partitions of the table's
// index. The table stores the number for each type of process, and it only grows. A manager raises
// it before it writes to the additional queues, and all managers of the type poll as many queues as
// are stored. So instances may be configured with different numbers, and a [Backlog] needs none.
//
// # Cost
//
// In DynamoDB's units, for items up to 1 KB, indexes included. In the layout journal.Classic a step
// with one event takes one read unit and nine write units, and each further event four. In
// journal.Packed a step that sends commands or changes timeouts takes two read units and four write
// units, or four and five as the first of its process. The commands of a step take five together, a
// timeout that is set or cancelled three, one that fires six, and an attempt at either that fails
// four. The first step of a process takes two more if its definition has OverWhen, and so does the
// last. While nothing is due, a running manager takes half a read unit for each queue and
// PollInterval, and half a unit each minute for the number of queues. This is 1,830 an hour with
// the defaults. An input that is passed over costs the load and two read units or more to find out
// whether it was handled before, or nothing if its type has no reaction. A step takes two round
// trips, in journal.Packed four; with commands one more, and those of the publisher.
// docs/guides/process.md has the details.
package process
