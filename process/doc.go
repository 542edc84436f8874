// Package process runs process managers, also called sagas, on the events of a journal. A process
// receives events of several aggregates, keeps a state, and decides which commands to send. It sets
// timeouts to act when an event does not arrive in time.
//
//	var definition = process.Define(sagas, // the aggregate with the state of a process
//		process.On(
//			func(e OrderPlaced, _ process.Input) string { return e.Order }, // its process
//			func(s Saga, e OrderPlaced, _ process.Input) (process.Step[Saga], error) {
//				return process.Record(Begun{e.Total}).
//					Send(ReserveCredit{e.Order, e.Total}).
//					SetTimeout("credit", time.Minute), nil
//			}).Starts(),
//		process.OnTimeout("credit", ...),
//	).EndsWhen(func(s Saga) bool { return s.Outcome != "" })
//
//	manager, err := process.New(j, client, definition, process.Config{
//		Publisher: p, GeneratePublishTopic: topics,
//	})
//	router.AddConsumerHandler("order-saga", "order", sub, manager.Handle)
//	go manager.Run(ctx) // fires timeouts
//
// # Stored state
//
// A process is an aggregate in the journal, of the type in its definition. Other groups can
// subscribe to its events. An input of a process is an event or a timeout. A reaction to an input
// is a pure function, as a decision is. It returns a [Step], which is stored in one transaction:
// the events, the commands and timeouts as rows of [Config].Table, and the id of the input, under
// the condition that the process has not changed since it was loaded. So a step happens once,
// however often its input is delivered, for as long as [journal.Config].CommandRetention.
// Concurrent inputs of a process are handled one after the other. An input without a step is not
// recorded: if it is delivered again, the reaction receives the state at that time.
//
// # Commands
//
// After the step is stored, its commands are sent in their order, and then the input is acked. If
// the program ends in between, the commands are sent when the input is delivered again, or after
// [Config].RetryAfter, whichever is first. So they are sent at least once, always with the same
// UUID, which is derived from the process, the id of the input and the command's place in the step.
// A handler passes this UUID to repository.WithCommandID, so that the command takes effect once:
//
//	id := cqrs.OriginalMessageFromCtx(ctx).UUID
//	accounts.Execute(ctx, cmd.Account, Reserve(cmd.Total), repository.WithCommandID(id))
//
// Commands carry the correlation id of their input, the id of the input as causation id, and the id
// of the process as aggregate id. So the commands of one process stay in order on a topic of
// package publisher.
//
// Commands of different steps may overtake each other: a process may receive inputs concurrently,
// and each of them sends its own commands.
//
// # Timeouts
//
// A step sets, moves and cancels timeouts by their names. Names can have keys that are chosen at
// run time, see [OnTimeout]. [Manager.Run] polls for due timeouts every [Config].PollInterval. A
// timeout fires as an input with an id that stays the same. So its step happens once, even if
// several managers find it, one of them hangs, or a program ends in the middle. Timeouts that are
// due while no manager runs fire in a row when one does, those of one process in the order of their
// times. If the process of a timeout has ended or was deleted, the timeout is dropped. If another
// input cancels or moves it while it fires, it does nothing.
//
// # End of a process
//
// A process has ended when the function of [Definition.EndsWhen] returns true for its state. Later
// inputs are ignored: Handle acks them, and [Stats].Ignored counts them. The events of the
// process stay in the journal.
//
// # Errors
//
// [Manager.Handle] returns the error of a reaction or of the publisher: the message is nacked and
// delivered again, and only its aggregate waits. See subscriber.Config.Failures for messages that
// always fail. A timeout that fails is logged and fires again after [Config].RetryAfter, without a
// limit. The same is true of stored commands that cannot be sent. [Stats].Failed counts these
// failures, and the row stores their number and the last error.
//
// # Pending work
//
// A [Backlog] lists the timeouts that are set and the commands that are not sent, of all managers
// that share a table. It needs none of their definitions. It can also retry or drop one of them.
// [Backlog.OpenProcesses] lists the processes that have begun and have not ended.
//
// # Queues
//
// [Config].Queues spreads timeouts and stored commands over several partitions of the table's
// index. The table stores the number of queues for each type of process, and it only grows. A
// manager increases it before it writes to the additional queues, and all managers of the type poll
// as many queues as are stored. So instances may be configured with different numbers, and a
// [Backlog] needs no number.
//
// # Cost
//
// These costs are in DynamoDB's capacity units, for items up to 1 KB, indexes included:
//
//   - In the layout journal.Classic a step with one event takes one read unit and nine write units,
//     and each further event four write units.
//   - In journal.Packed a step that sends commands or changes timeouts takes two read units and
//     four write units, or four and five if it is the first of its process.
//   - The commands of a step together take five write units.
//   - A timeout takes three write units to set or cancel, and six to fire. A step that sets one
//     with a key takes half a read unit for about 20 timeouts of the process, if the process has
//     ten events or more.
//   - A failed attempt at commands or a timeout takes four write units.
//   - If the definition has EndsWhen, the first and the last step of a process take two more write
//     units each.
//   - While nothing is due, a running manager takes half a read unit for each queue and
//     PollInterval, and half a unit each minute for the number of queues. This is 1,830 an hour
//     with the defaults.
//   - An input that is ignored costs the load and two read units or more, to find out whether
//     it was handled before. If its type has no reaction, it costs nothing.
//
// A step takes two round trips, in journal.Packed four. With commands it takes one more, and the
// round trips of the publisher. docs/guides/process.md has the details.
package process
