package eventlog

import (
	"context"
	"iter"
	"time"

	"github.com/aws/smithy-go/middleware"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Engine is the internal part of a journal's methods. The comments say what holds in both layouts,
// and what a layout adds to it. docs/reference/cost.md has the costs in both.
type Engine interface {
	// Append writes a commit: all of its events and Commit.Writes, or nothing. In the classic
	// layout it is one TransactWriteItems, which has the snapshot too. In the packed layout it is
	// one PutItem, or a TransactWriteItems if the events need several items or there are Writes. A
	// packed commit reads before that what Commit.Proven and Commit.Commands do not supply, and
	// writes its snapshot afterwards.
	//
	// Append repeats a request that DynamoDB throttles, that meets a transaction on one of its
	// items, or whose reply is lost, under the same commit id, until Config.RetryBudget or the
	// context ends. It never writes the commit twice.
	//
	// Nothing was written when the error is ErrConflict, *DeletedError, *DuplicateCommandError,
	// *WriteRefusedError, *TooLargeError, ErrInvalidCommit, *EncodingError, ErrKeyDestroyed,
	// *ConfigError, *aggregate.InvalidIDError, ErrRestored (packed layout), ErrThrottled,
	// ErrContended, ErrUnavailable, ErrTableMissing, ErrAccess or *CorruptItemError, nor when it is
	// only the context's. ErrOutcomeUnknown leaves it open, also when the context ended during a
	// request: see Journal.Resolve.
	Append(ctx context.Context, c Commit) (Receipt, error)

	// AppendJoint writes to several aggregates in one TransactWriteItems, in both layouts: all of
	// the parts, or nothing. The parts share one commit id. A part without events costs a condition
	// check: in the classic layout two write units for each KB of its head, in the packed layout
	// two. A CommandID costs a guard of its own, two units or more.
	//
	// The receipts are those of the parts, in their order. Errors: those of Append. For a command
	// that was executed before it is a *DuplicateCommandError without an aggregate.
	AppendJoint(ctx context.Context, c Joint) ([]Receipt, error)

	// Unchanged returns nil if all aggregates are at the given versions, at one moment. It reads
	// them in one transaction, so it sees all of a commit or nothing. Otherwise it returns a
	// *ConflictError for one that is not. The versions have to be proven, see Commit.Proven: the
	// packed layout only looks whether a commit follows, and reads the last commit of a place that
	// was kept. It costs two read units for each 4 KB of a head, or in the packed layout for each
	// aggregate, and for one that was kept a query of its last commit. While it meets other
	// transactions it also looks by plain reads whether an aggregate has moved on.
	//
	// Errors: *TooLargeError for more than 100 aggregates, or for heads of more than 4 MB together,
	// ErrRestored (packed layout), ErrThrottled, ErrContended, ErrTableMissing, ErrAccess,
	// *CorruptItemError, *DeletedError of a place that was kept, *aggregate.InvalidIDError, the
	// context's.
	Unchanged(ctx context.Context, places []Place) error

	// JointCommand returns the commit of a command of several aggregates. It returns false if there
	// is none that Config.CommandRetention keeps. It sees a commit whole or not at all. It costs
	// two read units.
	//
	// Errors: ErrInvalidCommit, *CorruptItemError, ErrTableMissing, ErrThrottled, ErrAccess, the
	// context's.
	JointCommand(ctx context.Context, commandID string) (JointCommand, bool, error)

	// Restore writes events that were read from a journal, this one or another, as they were: with
	// their ids, times, commit ids and payloads, to their aggregates and numbers. It stores
	// payloads of events and snapshot as they are given, with what their Encoding says, so read
	// them from a raw journal. It repeats its request as Append does, and wakes watchers. The
	// receipt holds Version, SnapshotLeftOut and SnapshotError; a truncated aggregate needs its
	// snapshot, which Restore never leaves out for lack of room.
	//
	// In the classic layout one transaction has the events, the head and the snapshot. In the
	// packed layout one transaction has the events, and the snapshot follows. If the snapshot of a
	// truncated aggregate then fails, Restore returns the error, though the events are written.
	//
	// If all of it is there already and the same, that is success. So Restore may be repeated,
	// above all after ErrOutcomeUnknown, which Journal.Resolve cannot answer here, since each event
	// keeps the commit id that it had.
	//
	// Except for such a snapshot, nothing was written when the error is ErrConflict, *DeletedError,
	// ErrInvalidCommit, *EncodingError, *TooLargeError, *ConfigError, *aggregate.InvalidIDError,
	// ErrThrottled, ErrContended, ErrUnavailable, ErrTableMissing, ErrAccess or *CorruptItemError.
	Restore(ctx context.Context, r Restoration) (Receipt, error)

	// Load reads an aggregate as it is after its last event, strongly consistent. It calls begin
	// with the head as far as it is known, and then apply with each later event, decoded, in order
	// and without a gap. After an error, the state that begin and apply have made must not be used.
	//
	// The head has its snapshot decoded. If there is a snapshot that cannot be decoded, the head
	// has none, and snapshotErr is an *EncodingError that says why, never an ErrKeyDestroyed. The
	// version of the head is that of the aggregate in the classic layout; in the packed layout it
	// is only known that the aggregate has at least that many events.
	//
	// Begin returns the number of the last event in the state from which it starts, 0 for none.
	// Load calls it again when it has to start over, for example because events were truncated
	// between its reads. Begin then resets the state.
	//
	// Of an aggregate without events it returns ErrNotFound, with the commands that had none.
	//
	// Errors: ErrNotFound, *DeletedError for a tombstone, an error of apply as it is, and those of
	// Journal.Head and Journal.Events.
	Load(
		ctx context.Context, id aggregate.ID,
		begin func(head journal.Head, snapshotErr error) (number uint64), apply func(*journal.Record) error,
	) (Loaded, error)

	// EventSize returns the most bytes that an event takes of [MaxItemBytes] and [MaxEventsBytes],
	// wherever in the aggregate it will stand. For an event that Append would refuse it returns the
	// error, so that a writer that fills transactions knows beforehand. It does not encode: the
	// payload counts in plain, with the most that Config.Encodings may add; so it also refuses an
	// event over 400 KB that Append would take after compression.
	//
	// Errors: *TooLargeError, ErrInvalidCommit, *aggregate.InvalidIDError.
	EventSize(id aggregate.ID, e Event) (int, error)

	// GroupBytes is up to how many bytes of events, as EventSize counts them, belong into one
	// commit that could as well be several.
	GroupBytes() int

	// StateAtFirst reports whether the first commit of an aggregate has to store a snapshot, since
	// other programs that share the tables expect one.
	StateAtFirst() bool

	// SnapshotsApart reports whether a snapshot is written after its commit, in a request of its
	// own, and only if it is of the commit's last event.
	SnapshotsApart() bool

	// AttributeNames returns the names of journal.Config.Attributes that the layout uses.
	AttributeNames() []string

	// TailByWriteTime reports whether the tail has every event near the place at which it was
	// written: no further before it than clocks, the index and requests are late. Otherwise an
	// import, or another program, may put events at any place.
	TailByWriteTime() bool

	// Command returns the commit of a command. It returns false where the aggregate has no such
	// command, or one that Config.CommandRetention no longer keeps. It reads strongly consistent:
	// in the classic layout the guard that the commit has left, by a transaction, so that it waits
	// while that commit is being written; in the packed layout the ids that the latest snapshot
	// keeps, those of the commits since, and a guard if the aggregate has any.
	//
	// Errors: ErrInvalidCommit, *CorruptItemError, ErrTableMissing, ErrThrottled, ErrAccess,
	// *aggregate.InvalidIDError, the context's.
	Command(ctx context.Context, id aggregate.ID, commandID string) (Command, bool, error)

	// Watch calls notify after every commit that goes through this Journal to an aggregate of the
	// type, with the version that it leads to. It is a hint for readers of the tail: commits of
	// other processes do not show here, and several commits may be reported out of order.
	//
	// notify runs in the committer's goroutine, must return at once, and must neither append nor
	// stop. Once stop has returned, no notify runs any more.
	Watch(aggregateType string, notify func(id aggregate.ID, version uint64)) (stop func())

	// Observe has the clock learn from the reply to a request that was sent at a time. Requests of
	// the journal itself do so already.
	Observe(sent time.Time, reply middleware.Metadata)

	// Ahead is by how much the clock, which is journal.Config.Now, may be ahead of DynamoDB's, as
	// far as that is measured.
	Ahead() time.Duration

	// Bounded returns the journal's client with reads that end after dynamo.ReplyLimit.
	Bounded() journal.Client

	// Shard returns the logical shard of an aggregate, 0 to Shards()-1.
	Shard(id aggregate.ID) int

	// TailShard reads one page of a logical shard from the tail index, in the order in which events
	// were written (Record.WrittenAt). In the classic layout a page has at most 1 MB. In the packed
	// layout it is a page of each of the shard's partitions, with up to about 1 MB of events that
	// the index does not have, which are read by key.
	//
	// The index is eventually consistent and the clocks of writers differ, so an event can appear
	// before a place that was already read. TailShard only hints at the aggregates that have moved;
	// the order and completeness of their events come from the sequence numbers.
	TailShard(ctx context.Context, q TailQuery) (TailPage, error)

	// SnapshotBefore returns the latest redundant snapshot of an aggregate that is of event number
	// or an earlier one, and nil if there is none. The head lists them. Where the head lists none
	// that can be used, the packed layout looks for the snapshot that stands for truncated events.
	// The classic layout, if the head lists none at all, asks the aggregate index of the snapshot
	// table, for a foreign writer keeps no list.
	//
	// A foreign writer's has Number 0, as in a Head: its number stands in its payload, if anywhere.
	//
	// A row that has expired counts as absent, so the result only saves reading events.
	//
	// Errors: *EncodingError, ErrKeyDestroyed, *CorruptItemError, ErrTableMissing, ErrThrottled,
	// ErrAccess, the context's.
	SnapshotBefore(ctx context.Context, head journal.Head, number uint64) (*journal.Snapshot, error)

	// RemoveSnapshots deletes redundant snapshots of an aggregate, those of Receipt.Surplus, 25
	// with one request. It repeats what DynamoDB leaves unprocessed until Config.RetryBudget ends.
	// It may be called again.
	//
	// After an error, the next commit with a [Redundancy] deletes what is left. Errors:
	// ErrThrottled, ErrTableMissing, ErrAccess, *aggregate.InvalidIDError, the context's, and one
	// for number 0, under which there is no redundant snapshot.
	RemoveSnapshots(ctx context.Context, id aggregate.ID, numbers []uint64) error

	// Trim truncates an aggregate that no repository loads, as Journal.Truncate does, and needs no
	// snapshot: it stores one of its own that stands for the events. A load of the aggregate fails
	// from then on. The place has to be the end of a commit. It may be repeated, as after an error.
	//
	// It costs what Journal.Truncate does, and no event is written.
	//
	// Errors: [ErrHasState] with nothing removed if the aggregate has a snapshot that is not of Trim,
	// ErrNotCovered if no commit ends before the place, *EncodingError, ErrKeyDestroyed, and those
	// of Journal.Truncate.
	Trim(ctx context.Context, id aggregate.ID, before uint64) error

	// NumberAt returns the number of the last event of an aggregate that had occurred at a time, 0
	// if there was none. It halves the history until it has the place, so it reads one event,
	// strongly consistent, for each doubling of the number of events: 17 for 100,000. Each takes
	// one request, or two in the packed layout if the event is inside a commit.
	//
	// The clocks of writers differ, so events may be dated earlier than those before them. Then
	// there are several places where an event at or before the time is followed by a later one, and
	// the result is one of them.
	//
	// Errors: *TruncatedError if the place is among events that were removed, and those of
	// Journal.Events.
	NumberAt(ctx context.Context, head journal.Head, t time.Time) (uint64, error)

	// ShardHeads yields the heads of one logical shard without their snapshots, in an order that
	// stays the same. It reads a page when it is asked for, so that the caller sets the pace. In
	// the classic layout a page is up to 1 MB of the snapshot table, in the order of the sort keys.
	// In the packed layout it is up to 200 aggregates of the index of aggregates, in the order of
	// their ids, and the last commit of each is read by itself.
	//
	// It reads eventually consistent, so recent writes may not show, unless the query says
	// otherwise. The index of aggregates is eventually consistent in any case, so in the packed
	// layout a new aggregate may not show. Heads that cannot be read go to corrupt.
	//
	// Errors: ErrThrottled, ErrTableMissing, ErrAccess, the context's.
	ShardHeads(ctx context.Context, q HeadsOfShard, corrupt func(*journal.CorruptItemError)) iter.Seq2[[]journal.Head, error]

	// Inspect reads what the tables hold of an aggregate, where Journal.Events reads what the head
	// promises: each gets every event of the aggregate in the journal table, and the inspection
	// lists what cannot be read. The events come in the order of the keys: as text in the classic
	// layout, by number in the packed one. All reads are strongly consistent.
	//
	// Head and events are separate reads, so a commit or a removal that is under way can show in
	// part: a fault counts only if another inspection, a little later, finds it again.
	//
	// Errors: ErrTableMissing, ErrThrottled, ErrAccess, *aggregate.InvalidIDError, the context's.
	Inspect(ctx context.Context, id aggregate.ID, each func(*journal.Record)) (Inspection, error)

	// Strays yields what the journal table holds and no reader finds. In the classic layout these
	// are events whose aggregate has no head, or has its place in another shard, and items that are
	// neither events nor anything else of the store. In the packed layout they are events of an
	// aggregate without event 1, items that an index has in another shard, and items whose keys
	// name no event. Of the events of one aggregate it may yield only one.
	//
	// It scans the table, eventually consistent, and looks for the head, or event 1, of the
	// aggregates on a page. With an aggregateType the classic layout reads only the shards of that
	// type; the packed layout scans the whole table even so.
	//
	// It ends with the first error: ErrTableMissing, ErrThrottled, ErrAccess, the context's.
	Strays(ctx context.Context, aggregateType string) iter.Seq2[*journal.CorruptItemError, error]
}
