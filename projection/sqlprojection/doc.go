// Package sqlprojection builds read models in an SQL database from the events that a
// [github.com/millrace-dev/millrace/subscriber] delivers, with exactly-once effects. It uses database/sql alone:
// the driver is the program's.
//
// A [Store] keeps the positions of consumer groups in a table beside the read model. Its handlers run a function of the
// caller's in a transaction that also moves the group's position on the event's aggregate, under the condition that
// the position still is where it was. So whatever fails, and however often an event is delivered, its effects in that
// database happen once, and in the order of the aggregate's events.
//
//	store, err := sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.PostgreSQL})
//	err = store.EnsureTable(ctx)
//
//	sub, err := subscriber.NewSubscriber(subscriber.Config{
//		Journal: j, ConsumerGroup: "totals",
//		Positions: store,
//	}, logger)
//
//	totals, err := store.React(
//		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
//			_, err := tx.ExecContext(ctx, "UPDATE accounts SET total = total + $1 WHERE id = $2", e.Amount, r.Aggregate.Value)
//			return err
//		}),
//	)
//	router.AddConsumerHandler("totals", "account", sub, totals)
//
// [Store.Handle] takes a function of the message instead of typed ones. [Store.AdvanceIn] is for programs that begin and
// commit their transactions in another way.
//
// # The transaction
//
// It begins, moves the position, runs the function, and commits. The position comes first: who has lost the shard is refused
// before the function runs, no two transactions of one aggregate are in it at the same time, and SQLite has the
// lock of a writer from the first statement on. The function uses only tx, and neither commits it nor rolls it back.
// What it does elsewhere, such as sending a mail, is not undone, and happens again with the next attempt.
//
// After an error or a panic of the function everything is rolled back, the message is nacked, and comes again; its aggregate waits, and
// no other. So it is with errors of the database: SQLite's "database is locked", deadlocks, failures to serialize, a lost connection.
// They need no handling, but Config.Failures of the subscriber counts them as failed attempts. The reply to a COMMIT may be
// lost; then the handler's error does not say whether it took place. Before the next attempt the position is read, and where it
// tells that it did, the message is acked without running the function.
//
// Events that no function takes are acked, and the subscriber moves the position past them some time later, in the same table.
//
// # Fencing
//
// A row belongs to the newest epoch, the term of the member that has the shard. A member claims an aggregate's row before
// the first message, which waits for a transaction of its predecessor that is still open, and after which the
// predecessor can commit none: it gets subscriber.ErrFenced. This takes a database in which an UPDATE locks its row, and
// sees what is committed when it has the lock; those of the dialects do so at any isolation level, or fail the later one.
//
// # The table
//
// It has one row for each group, aggregate and count of resets (subscriber.Group.Resets, the column generation), of some 100 bytes;
// [Store.Schema] is the statement that makes it. It belongs to one journal. A group that was reset finds no positions: empty the read
// model before the reset, or use another. Rows from before a reset, and of groups that were removed, are not read any more and may
// be deleted once no member from before runs. To change rows by hand stop the members first.
//
// A journal that is made anew counts epochs from 1 again, so give it another table, or empty it. If the database is restored from a backup, its
// positions go back together with the read model; set Config.SweepInterval of the subscriber, to a minute say, until a
// sweep has found all aggregates that it has to go on with.
//
// # Costs and limits
//
// An event takes three statements besides those of the function: BEGIN, an UPDATE by primary key, COMMIT; and two more
// for the first event of an aggregate in a member's term. Nothing is written to DynamoDB for it.
// Up to Config.MaxInFlight of the subscriber transactions are open at a time, so limit it, or the connections of db: who finds none
// waits. SQLite has one writer at a time: open it with a busy timeout.
//
// A transaction has the time that its message has. By default that is for ever, so set Config.AckDeadline of the subscriber, whose end rolls it back
// where a statement waits for a lock or for a database that does not answer; until then the aggregate waits.
//
// A PostgreSQL text has no NUL character, so an aggregate with one in its id is refused by the database and blocked.
//
// Package groups reads these positions where it is made with groups.WithPositions and the store: then its lag is right, and
// groups.WaitApplied has a query wait for what its user has just written. It cannot skip an event or reset a single aggregate, which
// is done by an UPDATE of the table. Listing, pause, resume, reset of the whole group, removal and retrying what is parked work as always.
package sqlprojection
