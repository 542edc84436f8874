// Package repository loads event-sourced aggregates from DynamoDB, runs decisions on them and
// appends the events that the decisions return.
//
//	accounts, err := repository.New(j, Accounts, repository.Config{})
//	...
//	// Load the aggregate, decide, and append the events. Repeat that on a conflict.
//	account, err := accounts.Execute(ctx, "42", Withdraw(30))
//	// Load the state after all events.
//	account, err = accounts.Load(ctx, "42")
//	// Append events at the version of account.
//	account, err = accounts.Save(ctx, account, Events{Withdrawn{30}})
//
// An [Aggregate] is a plain value: an id, a state and a version. The version is the sequence number
// of the last event. A [Repository] is safe for concurrent use. A process needs one for each
// definition.
//
// # Loading
//
// A load reads the head of the aggregate, strongly consistent, and then the events after the
// snapshot in the head. The head is the item that holds the number of events and the latest
// snapshot. A load reads up to 8 events by key, and more than that from the aggregate index, in
// pages of 1 MB. From the number of events it notices events that the index does not show yet, and
// reads them by key. It returns the state after all events or an error, never the state after some
// of them. This describes the layout journal.Classic. [Repository.Load] also describes
// journal.Packed.
//
// # Deciding
//
// [Repository.Execute] writes the events of a decision as one commit, under the condition that no
// other writer has committed since the load. If the condition is false, it loads the aggregate and
// decides again, after a pause that grows and has a random part. [Config.MaxAttempts] and the
// context limit the attempts.
//
// Each attempt passes the decision a copy of the state. A state type with maps, slices, pointers or
// interfaces is copied by encoding and decoding it; any other is copied by assignment. If a
// decision changes its copy, neither the stored state nor the result of Execute changes.
//
// Execute and Save apply events in their stored form: encoded and decoded again. So the returned
// state, and the state in a snapshot, is the state that a replay leads to, even if a codec drops
// part of a Go value. An event that cannot be decoded again is not written.
//
// # Saving
//
// [Repository.Save] appends events that the caller has decided on. It writes at the version of the
// aggregate that it is passed, and returns a [*journal.ConflictError] if the aggregate has another
// version by now.
//
// An aggregate that a repository returned carries a proof of its origin, bound to its id and its
// version. Save need not read such an aggregate. Other aggregates have no proof: those that were
// made by hand, decoded from JSON, returned by another repository, or changed in ID or Version.
// Save first loads such an aggregate, compares the versions, and uses the state that it has loaded.
// In both cases Save ignores changes to State. It never stores a State that the caller has set or
// changed, neither in a snapshot nor in the cache.
//
// # Versions from clients
//
// A client that shows a state and changes it later can send back the version, in an If-Match header
// for example. [WithExpectedVersion] then makes the call succeed only at that version:
//
//	expect := repository.WithExpectedVersion(version)
//	account, err := accounts.Execute(ctx, "42", Withdraw(30), expect)
//
// # Commands that take effect once
//
// A command id ([WithCommandID]) is stored with the commit, in the same transaction. A repeated
// command whose id the aggregate knows writes nothing, in any process and after any time. Use it in
// handlers whose messages may be delivered twice.
//
// A command id also makes a command safe to repeat if it is unknown whether its commit was written.
// Execute repeats such a command by itself until the outcome is known, for at most one more
// RetryBudget of [journal.Config]. If it still returns [journal.ErrOutcomeUnknown], execute the
// command again later.
//
// # Several aggregates
//
// A [Transaction] is one decision over several aggregates, of any types. [Transaction.Execute]
// loads them, and commits the events of all of them in one transaction, under the condition that
// none has changed:
//
//	var tx repository.Transaction
//	from, to := accounts.AddTo(&tx, "alice"), accounts.AddTo(&tx, "bob")
//	err := tx.Execute(ctx, func() error {
//		return Transfer(&from.Participant, &to.Participant, 30)
//	})
//
// docs/guides/consistency.md says when to use it, and when to use a process manager.
//
// # Writes to other tables
//
// [WithWrites] adds further actions to the transaction of a commit: an outbox row, or a guard that
// makes an email address unique.
//
// # Cache
//
// With a [Config.Cache], Execute decides on the last state that it has read or written, without
// reading first, so a command takes one round trip. This is as safe as a load. The condition of the
// commit detects other writers, and Execute then reads only their events. It repeats a decision on
// the stored state before it reports that the decision refuses, returns no events or cannot be
// written. Load reads the version and new events. Restart the processes that have a cache after
// tables were restored from a backup: see [Config.Cache].
//
// # Snapshots
//
// The state can be stored with the events of a commit, so that loads start from it. By default a
// commit stores it if that costs less than it saves ([Config.Snapshots]). A [SnapshotPolicy]
// chooses other commits: [Every], [Never] or a function of your own. Snapshots only shorten loads.
// If one is too large for an item, or cannot be encoded or decoded, the repository reports that to
// [Config.Logger] and uses the events. With [Config.IgnoreSnapshots] loads always replay all
// events.
//
// In the layout journal.Classic the state is in the head and part of the commit's transaction. The
// first commit of an aggregate always stores it, because the schema of the tables requires that.
// DynamoDB bills a write by the size of the whole item, and every commit writes the head. So a
// state of 10 KB costs each commit of the aggregate 30 write units, even if the commit does not
// store the state again. In the layout journal.Packed the state has its own row, which Save and
// Execute write after the commit. This costs one more round trip and one write unit for each KB,
// only for the commits that store it. docs/reference/cost.md lists the costs by the size of the
// state.
//
// A snapshot is read by later versions of the program. Increase [Config.SnapshotSchema] when the
// state type gets a field that is computed from old events, or when the meaning of a field changes.
// Loads then ignore older snapshots, and the next commit of their aggregate replaces them.
//
// With [Config.Redundancy] each snapshot is also stored under its own sequence number, and the last
// few are kept. [Repository.LoadAtVersion] and [Repository.LoadAtTime], which return an aggregate
// as it was after some event or at some time, use them. So does [Repository.States], which yields
// the states after a range of events. The head lists the redundant snapshots. So a commit without a
// snapshot does nothing for them. A commit with a snapshot removes the oldest with one more
// request.
//
// # Removal
//
// [Repository.Truncate] removes old events that a snapshot includes. It refuses to remove events
// that this repository would replay. [Repository.Delete] removes an aggregate permanently.
//
// # Evolution
//
// Stored events never change, but programs do. [aggregate.Definition.WithUpcasters] converts events
// of old types to current events whenever an aggregate is loaded. A stored event is one version,
// even if it becomes several events or none.
//
// An event whose type the definition lacks fails the load, because a decision on the state without
// it could be wrong. While a newer program is rolled out, an older one can continue with
// [SkipUnknown] if its decisions stay correct without the new events. Its aggregates are then
// [Aggregate.Partial] and make no snapshots. But it could still read a snapshot of the newer
// program and store it again without the fields that it does not know. So a program that adds event
// types increases [Config.SnapshotSchema], and the older one then replays the events.
//
// Snapshots contain the results of upcasters at the time when they were taken. If the result of an
// upcaster has to change, increase the SnapshotSchema too.
//
// # Tables shared with other programs
//
// Programs of the event-store-adapter family may write to the same tables. They store their own
// form of the state in the head, with the sequence number inside it. Their events have no type, and
// their payloads contain id and number. To share aggregates with them, use a [SnapshotCodec] for
// that form, [journal.Config].EventType, [Config.EventPayload] and a codec for their events;
// docs/guides/interop.md shows all of it. If the codec finds no number in the snapshot of another
// program, the repository replays the events.
//
// # Errors
//
// The errors of the packages journal and aggregate are returned in the chain, for errors.Is and
// errors.As. docs/reference/errors.md lists all of them, with what was written and what to do.
// Handle [journal.ErrNotFound], [journal.ErrConflict] and [journal.ErrOutcomeUnknown]. With the
// last, the commit may have been written: see "Commands that take effect once", or call
// [journal.Journal.Resolve]. A [*RefusedError] wraps the error of a decision.
package repository
