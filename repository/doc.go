// Package repository loads aggregates from the journal, lets decisions run on them and appends the events
// that follow.
//
//	accounts, err := repository.New(j, Accounts, repository.Config{})
//	...
//	account, err := accounts.Execute(ctx, "42", Withdraw(30)) // load, decide, append; again on a conflict
//	account, err = accounts.Load(ctx, "42")                   // the state after all events
//	account, err = accounts.Save(ctx, account, Events{Withdrawn{30}}) // append at the version that was loaded
//
// An [Aggregate] is a plain value: an id, a state and a version, which is the sequence number of its last
// event. A [Repository] is safe for concurrent use; one for each definition and process is enough.
//
// # Loading
//
// A load reads the head of the aggregate, strongly consistent, and then the events after the snapshot in it:
// up to 8 by key, more from the aggregate index, whose pages hold 1 MB each. The head says how many there
// are, so what the index has not caught up with is noticed and read by key. A load gives the state
// after all of them or an error, never a part.
//
// # Deciding
//
// [Repository.Execute] makes a decision's events one commit, which is written only if nobody else has
// written meanwhile. Otherwise the aggregate is loaded again and the decision runs again, after a pause that
// grows and has a random part. [Config.MaxAttempts] and the context bound this.
//
// A decision gets a state of its own. If the state type has maps, slices, pointers or interfaces, which a
// plain copy would share, it is encoded and decoded for each attempt; a type without them, time.Time apart,
// costs nothing. What a decision does to its state, then or later, reaches neither what is stored nor what is
// returned.
//
// Events are applied in the form in which they are stored: encoded and decoded again. So the state that
// Execute and Save return, and the one in a snapshot, are those that a replay gives, also where a codec keeps
// less than the Go value has; and an event that could not be read back is never written.
//
// # Commands that take effect once
//
// A [CommandID] is stored with the commit, in the same transaction; a command whose id the aggregate knows writes
// nothing, in whichever process and however much later it comes again. That is what a handler needs whose message may be
// delivered twice, and it settles [journal.ErrOutcomeUnknown]: execute the command again.
//
// # Writes of your own
//
// [Writes] puts further actions into the transaction of a commit: an outbox row, or a guard that makes an
// e-mail address unique.
//
// # Cache
//
// With a [Config.Cache], Execute decides on the state that it has seen last and writes without reading, as in "one round trip
// for a command". It is never less safe: other writers are noticed by the commit's condition, and then only their events
// are read; and a decision that refuses, leaves nothing to write or cannot be written is made again on what is stored before it
// counts. Load reads the version and the events since. After tables were restored from a backup, restart the processes that have
// a cache: see [Config.Cache].
//
// # Snapshots
//
// The state can be stored in the head, beside the events of a commit and in the same transaction, so that
// loads start there. A [SnapshotPolicy] chooses the commits: [Every], [Never] or a function of your own. The
// first commit of an aggregate always stores it; the schema of the tables wants that. Snapshots are only ever a
// short cut: one that is too large for an item, cannot be encoded or cannot be decoded is reported to
// [Config.Logger] and left out, and the journal is replayed.
//
// DynamoDB bills a write by the size of the whole item, and every commit writes the head. So a state of
// 10 KB costs each commit of the aggregate 30 write units, whether or not the commit stores it anew. The layout
// [journal.Lean] keeps the state out of the head; docs/cost.md compares the two.
//
// A snapshot outlives the program that wrote it. When the state type gets a field that is computed from
// old events, or one changes its meaning, old snapshots must not be used any more: raise [Config.SnapshotSchema]. They
// are then ignored, and replaced by the next commit of their aggregate.
//
// With [Config.Redundancy] each snapshot is also stored under its own sequence number, and the last of them are kept. They
// serve [Repository.LoadAt] and [Repository.LoadAsOf], which give an aggregate as it was after some event or at some time. The
// head lists which ones there are, so a commit that stores no snapshot does nothing for them, and one that does removes those
// beyond the count with one more request.
//
// # Evolution
//
// Events are stored for good, and programs change. [aggregate.Definition.WithUpcasters] turns events of old types
// into those of today whenever an aggregate is loaded; a stored event is one version, whether it becomes one
// event, several or none.
//
// An event whose type the definition lacks fails the load, since a decision on the state without it could be
// wrong. While a newer program is rolled out, an older one can go on with [SkipUnknown] if its decisions hold without the
// new events. Its aggregates are then [Aggregate.Partial] and make no snapshots. But it could still read one that the
// newer program made and store it again without what it does not know. So a program that brings new event types
// raises [Config.SnapshotSchema]; the older one then replays the events.
//
// Snapshots hold what upcasters gave when they were taken. An upcaster that must give something else also calls for
// a new number.
//
// # Tables shared with other programs
//
// Programs of the event-store-adapter family may write to the same tables. They store their own form of the
// state in the head, with the sequence number inside it, and their events carry no type but have id and number in
// the payload. A [SnapshotCodec] that reads and writes that form, [journal.Config].EventType,
// [Config.EventPayload] and a codec for their events are what it takes to share aggregates with them; docs/interop.md shows all of it. Where the
// codec finds no number in a snapshot that somebody else wrote, the journal is replayed.
//
// # Errors
//
// The errors of journal and aggregate come through, for errors.Is and errors.As; docs/errors.md lists them all, with what
// was written and what to do. Those to act on are [journal.ErrNotFound], [journal.ErrConflict] and
// [journal.ErrOutcomeUnknown]: with the last, the commit may have been written, so it is never repeated here;
// [journal.Journal.Resolve] tells, or a [CommandID] makes it safe to execute the command again. The error of a decision is
// returned as it is.
package repository
