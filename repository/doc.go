// Package repository loads aggregates from the journal, runs decisions on them and appends the
// events that follow.
//
//	accounts, err := repository.New(j, Accounts, repository.Config{})
//	...
//	account, err := accounts.Execute(ctx, "42", Withdraw(30)) // load, decide, append; again on a conflict
//	account, err = accounts.Load(ctx, "42")                   // the state after all events
//	account, err = accounts.Save(ctx, account, Events{Withdrawn{30}}) // append at the version of account
//
// An [Aggregate] is a plain value: an id, a state and a version. The version is the sequence number
// of the last event. A [Repository] is safe for concurrent use. One for each definition and process
// is enough.
//
// # Loading
//
// A load reads the head of the aggregate, strongly consistent, and then the events after the
// snapshot in the head. It reads up to 8 events by key, and more than that from the aggregate
// index, in pages of 1 MB. The head holds the number of events, so a load notices events that the
// index does not show yet, and reads them by key. It returns the state after all events or an
// error, never the state after some of them.
//
// # Deciding
//
// [Repository.Execute] writes the events of a decision as one commit, under the condition that
// nobody else has written since the load. If that is false, it loads the aggregate and decides
// again, after a pause that grows and has a random part. [Config.MaxAttempts] and the context limit
// the attempts.
//
// Each attempt passes the decision a copy of the state. A state type with maps, slices, pointers or
// interfaces is copied by encoding and decoding it; any other is copied by assignment. A decision
// that changes its copy changes neither what is stored nor what Execute returns.
//
// Execute and Save apply events in the form in which they are stored: encoded and decoded again.
// So the state that they return, and the one in a snapshot, is the state that a replay leads to,
// even if a codec drops part of a Go value. An event that cannot be decoded again is not written.
//
// # Saving
//
// [Repository.Save] appends events that the caller has decided on. It writes at the version of the
// aggregate that it is given, and returns a [*journal.ConflictError] if the aggregate has another
// version by now.
//
// An aggregate that a repository returned carries a proof of its origin, bound to its id and its
// version. Save needs no read for it. Any other aggregate has no proof: one that was made by hand,
// decoded from JSON, returned by another repository, or changed in its ID or Version. Save loads
// such an aggregate first, compares the versions, and uses the state that it has loaded. In both
// cases State is output only. Save never stores a State that the caller has set or changed, neither
// in a snapshot nor in the cache.
//
// # Versions from clients
//
// A client that shows a state and changes it later can send back the version, in an If-Match header
// for example. [ExpectVersion] then makes the call succeed only at that version:
//
//	account, err := accounts.Execute(ctx, "42", Withdraw(30), repository.ExpectVersion(version))
//
// # Commands that take effect once
//
// A [CommandID] is stored with the commit, in the same transaction. A command whose id the
// aggregate knows writes nothing, in whichever process and however much later it comes again. A
// handler whose message may be delivered twice needs this.
//
// It also makes a command safe to repeat if it is unknown whether its commit was written. Execute
// repeats such a command by itself until the outcome is known, for one more RetryBudget of
// [journal.Config]. If it still returns [journal.ErrOutcomeUnknown], execute the command again
// later.
//
// # Several aggregates
//
// [Parts] are the aggregates of one decision, of any types. [Parts.Execute] loads them, and commits
// the events of all of them in one transaction, under the condition that none has changed:
//
//	var parts repository.Parts
//	from, to := accounts.Part(&parts, "alice"), accounts.Part(&parts, "bob")
//	err := parts.Execute(ctx, func() error {
//		return Transfer(&from.Part, &to.Part, 30)
//	})
//
// docs/guides/consistency.md says when to use it, and when a process manager.
//
// # Writes of your own
//
// [Writes] puts further actions into the transaction of a commit: an outbox row, or a guard that
// makes an e-mail address unique.
//
// # Cache
//
// With a [Config.Cache], Execute decides on the last state that it has seen and writes without
// reading, so a command takes one round trip. This is as safe as a load. The condition of the
// commit detects other writers, and Execute then reads only their events. It repeats a decision
// that refuses, returns no events or cannot be written on what is stored, before the result counts.
// Load reads the version and the events since. Restart the processes that have a cache after tables
// were restored from a backup: see [Config.Cache].
//
// # Snapshots
//
// The state can be stored with the events of a commit, so that loads start there. A
// [SnapshotPolicy] chooses the commits: [Every], [Never] or a function of your own. Snapshots only
// shorten loads. If one is too large for an item, cannot be encoded or cannot be decoded, the
// repository reports that to [Config.Logger] and uses the events.
// With [Config.IgnoreSnapshots] loads always replay all events.
//
// In the layout journal.Classic the state is in the head and part of the commit's transaction. The
// first commit of an aggregate always stores it, because the schema of the tables requires that.
// DynamoDB bills a write by the size of the whole item, and every commit writes the head. So a
// state of 10 KB costs each commit of the aggregate 30 write units, even if the commit does not
// store it again. In the layout journal.Packed the state has a row of its own, which Save and
// Execute write after the commit: one more round trip, and one write unit for each KB, only for the
// commits that the policy chooses. docs/reference/cost.md has the costs by the size of the state.
//
// A snapshot outlives the program that wrote it. Raise [Config.SnapshotSchema] when the state type
// gets a field that is computed from old events, or when a field changes its meaning. Older
// snapshots are then ignored, and replaced by the next commit of their aggregate.
//
// With [Config.Redundancy] each snapshot is also stored under its own sequence number, and the last
// few are kept. They serve [Repository.LoadAt] and [Repository.LoadAsOf], which return an aggregate
// as it was after some event or at some time, and [Repository.States], which yields the states
// after a range of events. The head lists them. So a commit that stores no snapshot does nothing
// for them, and one that does removes the surplus with one more request.
//
// # Removal
//
// [Repository.Truncate] removes old events that a snapshot stands for. It refuses to remove events
// that this repository would replay. [Repository.Delete] removes an aggregate for good.
//
// # Evolution
//
// Events are stored for good, and programs change. [aggregate.Definition.WithUpcasters] turns
// events of old types into those of today whenever an aggregate is loaded. A stored event is one
// version, even if it becomes several events or none.
//
// An event whose type the definition lacks fails the load, because a decision on the state without
// it could be wrong. While a newer program is rolled out, an older one can continue with
// [SkipUnknown] if its decisions hold without the new events. Its aggregates are then
// [Aggregate.Partial] and make no snapshots. But it could still read a snapshot of the newer
// program and store it again without what it does not know. So a program that adds event types
// raises [Config.SnapshotSchema], and the older one then replays the events.
//
// Snapshots hold what upcasters returned when they were taken. An upcaster that has to return
// something else also needs a new number.
//
// # Tables shared with other programs
//
// Programs of the event-store-adapter family may write to the same tables. They store their own
// form of the state in the head, with the sequence number inside it. Their events have no type, and
// id and number are in the payload. To share aggregates with them, use a [SnapshotCodec] for that
// form, [journal.Config].EventType, [Config.EventPayload] and a codec for their events;
// docs/guides/interop.md shows all of it. If the codec finds no number in the snapshot of another program,
// the repository replays the events.
//
// # Errors
//
// The errors of journal and aggregate are returned in the chain, for errors.Is and errors.As.
// docs/reference/errors.md lists them all, with what was written and what to do. Handle
// [journal.ErrNotFound], [journal.ErrConflict] and [journal.ErrOutcomeUnknown]. With the last, the
// commit may have been written: see "Commands that take effect once", or ask
// [journal.Journal.Resolve]. A [*RefusedError] wraps the error of a decision.
package repository
