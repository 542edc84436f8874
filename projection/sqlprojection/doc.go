// Package sqlprojection builds read models in an SQL database. The effects of each event happen
// exactly once. A [github.com/millrace-dev/millrace/subscriber] delivers the events. The package
// uses database/sql only; the program imports the driver.
//
// A [Store] keeps the positions of consumer groups in a table beside the read model. Its handlers
// run a function in a transaction that also moves the position of the group on the event's
// aggregate, under the condition that the position has not moved. So the effects of an event in
// that database happen once, in the order of the aggregate's events, whatever fails and however
// often the event is delivered.
//
//	store, err := sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.PostgreSQL})
//	err = store.CreateTable(ctx)
//
//	sub, err := subscriber.NewSubscriber(subscriber.Config{
//		Journal: j, ConsumerGroup: "totals",
//		Positions: store,
//	}, logger)
//
//	const add = "UPDATE accounts SET total = total + $1 WHERE id = $2"
//	totals, err := store.React(
//		sqlprojection.On(func(
//			ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record,
//		) error {
//			_, err := tx.ExecContext(ctx, add, e.Amount, r.Aggregate.Value)
//			return err
//		}),
//	)
//	router.AddConsumerHandler("totals", "account", sub, totals)
//
// [Store.Handle] takes a function of the message instead of typed functions. [Store.AdvanceIn] is
// for programs that begin and commit their transactions in another way.
//
// # The transaction
//
// A handler begins a transaction, moves the position, runs the function, and commits. The position
// comes first for three reasons: a member that has lost the shard is refused before the function
// runs; two transactions of one aggregate never run the function at the same time; and SQLite has
// its write lock from the first statement on. The function uses only tx, and neither commits it nor
// rolls it back. Other effects of the function, such as sending a mail, are not undone and happen
// again with the next attempt.
//
// After an error or a panic of the function everything is rolled back. The message is nacked and is
// delivered again. Only its aggregate waits. Errors of the database have the same effect: SQLite's
// "database is locked", deadlocks, serialization failures, a lost connection. They need no
// handling, but Config.Failures of the subscriber counts them as failed attempts.
//
// The reply to a COMMIT may be lost. The error of the handler does not say then whether the
// transaction was committed. The next attempt reads the position first. If it has moved, the
// message is acked without running the function.
//
// Events without a function are acked. The subscriber moves the position past them later, in the
// same table.
//
// # Fencing
//
// A row belongs to the newest epoch. An epoch is the number of the term in which one member owns
// the shard. Before the first message a member claims the row of the aggregate. The claim waits for
// an open transaction of the former owner. After it the former owner cannot commit any more and
// gets subscriber.ErrFenced. This requires a database in which an UPDATE locks its row, and then
// sees what was committed before. The databases of the dialects do so at any isolation level, or
// fail the later transaction.
//
// # The table
//
// The table has one row of about 100 bytes for each group, aggregate and count of resets
// (subscriber.GroupKey.Resets, the column generation). [Store.Schema] returns the statement that
// creates it. It belongs to one journal.
//
// A group that was reset finds no positions: empty the read model before the reset, or use another
// one. Rows from before a reset, and of groups that were removed, are not read any more. They may
// be deleted when no member from before the reset runs. Stop the members before you change rows by
// hand.
//
// A new journal counts epochs from 1 again, so use another table for it, or empty this one. If the
// database is restored from a backup, its positions return to their earlier values together with
// the read model. Set Timing.ReconcileInterval of the subscriber, for example to a minute,
// until reconciliation has found all aggregates that have events to handle again.
package sqlprojection
