package eventlog

import (
	"context"
	"iter"
	"time"

	"github.com/aws/smithy-go/middleware"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Engine is the internal part of a journal's methods. The comments describe what is common to both
// layouts, and the differences. docs/reference/cost.md has the costs in both.
type Engine interface {
	// Append writes a commit: all of its events and Commit.Writes, or nothing. In the layout
	// Classic it makes one TransactWriteItems, which includes the snapshot. In Packed it makes one
	// PutItem, or a TransactWriteItems if the events need several items or there are Writes. In
	// Packed it first reads what Commit.Proven and Commit.Commands do not supply, and writes the
	// snapshot afterwards.
	//
	// Append repeats a request that DynamoDB throttles, that meets a transaction on one of its
	// items, or whose reply is lost. It repeats it with the same commit id until Config.RetryBudget
	// or the context ends. It never writes the commit twice.
	//
	// Nothing was written if the error is ErrConflict, *DeletedError, *DuplicateCommandError,
	// *WriteRefusedError, *TooLargeError, ErrInvalidCommit, *EncodingError, ErrKeyDestroyed,
	// *ConfigError, *aggregate.InvalidIDError, ErrRestored (layout Packed), ErrThrottled,
	// ErrContended, ErrUnavailable, ErrTableMissing, ErrAccess, *CorruptItemError, or only the
	// error of ctx. ErrOutcomeUnknown means that the commit may have been written, for example if
	// ctx ended during a request; see Journal.Resolve.
	Append(ctx context.Context, c Commit) (Receipt, error)

	// AppendJoint writes to several aggregates in one TransactWriteItems, in both layouts: all
	// parts, or nothing. The parts share one commit id. A part without events costs a condition
	// check: two write units for each KB of its head in Classic, and two units in Packed. A
	// CommandID costs an additional guard of two units or more.
	//
	// It returns the receipts of the parts, in their order. The errors are those of Append. If the
	// command was executed before, the *DuplicateCommandError has no aggregate.
	AppendJoint(ctx context.Context, c Joint) ([]Receipt, error)

	// Unchanged returns nil if all aggregates are at the given versions at one moment, and
	// otherwise a *ConflictError for one of them. It reads them in one transaction, so it sees
	// either all of a commit or nothing. The versions must be proven, see Commit.Proven. In Packed
	// it only checks whether a commit follows each version; for a place with Kept it also reads the
	// last commit. While it meets other transactions, it also checks with plain reads whether an
	// aggregate has changed.
	//
	// In Classic it costs two read units for each 4 KB of a head. In Packed it costs two for each
	// aggregate, plus a query of the last commit for a place with Kept.
	//
	// Errors: *TooLargeError for more than 100 aggregates, or for heads of more than 4 MB together,
	// ErrRestored (layout Packed), ErrThrottled, ErrContended, ErrTableMissing, ErrAccess,
	// *CorruptItemError, *DeletedError for a place with Kept, *aggregate.InvalidIDError, and the
	// error of ctx.
	Unchanged(ctx context.Context, places []Place) error

	// JointCommand returns the commit of a command for several aggregates. It returns false if
	// there is none, or if Config.CommandRetention has passed. It sees a commit whole or not at
	// all. It costs two read units.
	//
	// Errors: ErrInvalidCommit, *CorruptItemError, ErrTableMissing, ErrThrottled, ErrAccess, and
	// the error of ctx.
	JointCommand(ctx context.Context, commandID string) (JointCommand, bool, error)

	// Restore writes events that were read from this or another journal, with their original
	// aggregates, numbers, ids, times, commit ids and payloads. It stores payloads of events and
	// snapshot unchanged, with their Encoding, so read them from a raw journal. It repeats its
	// request like Append, and wakes watchers. The receipt holds Version, SnapshotLeftOut and
	// SnapshotError. Restore never leaves out the snapshot of a truncated aggregate, which needs
	// it.
	//
	// In Classic one transaction has the events, the head and the snapshot. In Packed one
	// transaction has the events, and the snapshot follows. If the snapshot of a truncated
	// aggregate then fails, Restore returns the error although the events are written.
	//
	// If the journal already has the same events, Restore succeeds. So it may be repeated,
	// especially after ErrOutcomeUnknown. Journal.Resolve does not work here, since each event
	// keeps its original commit id.
	//
	// Except for such a snapshot, nothing was written if the error is ErrConflict, *DeletedError,
	// ErrInvalidCommit, *EncodingError, *TooLargeError, *ConfigError, *aggregate.InvalidIDError,
	// ErrThrottled, ErrContended, ErrUnavailable, ErrTableMissing, ErrAccess or *CorruptItemError.
	Restore(ctx context.Context, r Restoration) (Receipt, error)

	// Load reads an aggregate after its last event, strongly consistent. It calls begin with the
	// head as far as it is known, and then apply with each later event, decoded, in order and
	// without a gap. After an error, the state that begin and apply have made must not be used.
	//
	// The head has its decoded snapshot. If the snapshot cannot be decoded, the head has none, and
	// snapshotErr is an *EncodingError with the reason. It is never an ErrKeyDestroyed. In Classic
	// the version of the head is the version of the aggregate. In Packed it only means that the
	// aggregate has at least that many events.
	//
	// Begin returns the number of the last event in the state from which it starts, and 0 for no
	// state. Load calls begin again if it must start again, for example because events were
	// truncated between its reads. Begin must then reset the state.
	//
	// If the aggregate has no events, Load returns ErrNotFound, and the aggregate's commands
	// without events.
	//
	// Errors: ErrNotFound, *DeletedError for a tombstone, an error of apply unchanged, and the
	// errors of Journal.Head and Journal.Events.
	Load(
		ctx context.Context, id aggregate.ID,
		begin func(head journal.Head, snapshotErr error) (number uint64), apply func(*journal.Record) error,
	) (Loaded, error)

	// EventSize returns the largest number of bytes that an event can take of [MaxItemBytes] and
	// [MaxEventsBytes], at any place in the aggregate. If Append would refuse the event, EventSize
	// returns the error, so that a writer that fills transactions knows beforehand. It does not
	// encode: it counts the plain payload plus the overhead of Config.Encodings. So it also refuses
	// an event over 400 KB that Append would accept after compression.
	//
	// Errors: *TooLargeError, ErrInvalidCommit, *aggregate.InvalidIDError.
	EventSize(id aggregate.ID, e Event) (int, error)

	// GroupBytes returns the largest size of a commit that groups independent messages, in bytes of
	// events as EventSize counts them.
	GroupBytes() int

	// StateAtFirst reports whether the first commit of an aggregate must store a snapshot, because
	// other programs that share the tables expect one.
	StateAtFirst() bool

	// SnapshotsApart reports whether a snapshot is written after its commit, in a separate request,
	// and only if it includes the last event of the commit.
	SnapshotsApart() bool

	// AttributeNames returns the names in journal.Config.Attributes that the layout uses.
	AttributeNames() []string

	// TailByWriteTime reports whether the tail is in the order in which events were written, except
	// for differences of clocks and delays of the index and of requests. If not, an import or
	// another program can add events at any place of the tail.
	TailByWriteTime() bool

	// Command returns the commit of a command. It returns false if the aggregate has no such
	// command, or if Config.CommandRetention has passed. It reads strongly consistent. In Classic
	// it reads the guard of the commit in a transaction, so it waits while that commit is being
	// written. In Packed it reads the ids in the latest snapshot and in later commits, and a guard
	// if the aggregate has any.
	//
	// Errors: ErrInvalidCommit, *CorruptItemError, ErrTableMissing, ErrThrottled, ErrAccess,
	// *aggregate.InvalidIDError, and the error of ctx.
	Command(ctx context.Context, id aggregate.ID, commandID string) (Command, bool, error)

	// Watch calls notify after every commit to an aggregate of the type through this Journal, with
	// the new version. It is a hint for readers of the tail: commits of other processes are not
	// reported, and several commits may be reported out of order.
	//
	// notify runs in the committer's goroutine. It must return immediately, and must neither append
	// nor call stop. After stop has returned, notify is not called any more.
	Watch(aggregateType string, notify func(id aggregate.ID, version uint64)) (stop func())

	// Observe passes the reply to a request, and the time at which the request was sent, to the
	// clock. Requests of the journal itself do this already.
	Observe(sent time.Time, reply middleware.Metadata)

	// Ahead returns by how much the clock journal.Config.Now can be ahead of DynamoDB's clock,
	// according to the measurements so far.
	Ahead() time.Duration

	// Reached returns a time that DynamoDB's clock has certainly reached, according to the latest
	// reply. It does not depend on what this machine's clock shows. Dates of replies are in whole
	// seconds, so the first results can be a second too early, and later ones some milliseconds. It
	// returns false if replies have no dates, or if journal.Config.Now was given.
	Reached() (time.Time, bool)

	// ConfirmClock makes requests until the latest reply does not contradict the known difference
	// of the clocks, so that journal.Config.Now is right if somebody has set this machine's clock.
	// It makes no request if the latest reply agrees, and six at most.
	ConfirmClock(ctx context.Context) error

	// Bounded returns the journal's client, with reads that end after dynamo.ReplyLimit.
	Bounded() journal.Client

	// Shard returns the logical shard of an aggregate, 0 to Shards()-1.
	Shard(id aggregate.ID) int

	// TailShard reads one page of a logical shard from the tail index, in the order in which events
	// were written (Record.WrittenAt). In Classic a page has at most 1 MB. In Packed it has a page
	// of each of the shard's partitions. Events that the index lacks are read by key, up to about 1
	// MB.
	//
	// The index is eventually consistent and the clocks of writers differ. So an event can appear
	// before a place that was already read. TailShard only hints at the aggregates that have
	// changed. The order and completeness of their events follow from the sequence numbers.
	TailShard(ctx context.Context, q TailQuery) (TailPage, error)

	// SnapshotBefore returns the latest redundant snapshot of an aggregate that includes at most
	// the event with that number. It returns nil if there is none. The head lists the snapshots. If
	// no listed snapshot can be used, Packed looks for the snapshot that stands for truncated
	// events. If the head lists none, Classic queries the aggregate index of the snapshot table,
	// because other programs keep no list.
	//
	// A snapshot of another program has Number 0, as in a Head. Only its payload may contain the
	// number.
	//
	// An expired row counts as absent. The result only saves reading events.
	//
	// Errors: *EncodingError, ErrKeyDestroyed, *CorruptItemError, ErrTableMissing, ErrThrottled,
	// ErrAccess, and the error of ctx.
	SnapshotBefore(ctx context.Context, head journal.Head, number uint64) (*journal.Snapshot, error)

	// RemoveSnapshots deletes redundant snapshots of an aggregate, those in Receipt.Surplus, 25
	// with one request. It repeats deletions that DynamoDB left unprocessed until
	// Config.RetryBudget ends. It may be called again. After an error, the next commit with a
	// [Redundancy] deletes the rest.
	//
	// Errors: ErrThrottled, ErrTableMissing, ErrAccess, *aggregate.InvalidIDError, the error of
	// ctx, and an error for number 0, which is not a redundant snapshot.
	RemoveSnapshots(ctx context.Context, id aggregate.ID, numbers []uint64) error

	// Trim truncates an aggregate that no repository loads, like Journal.Truncate. It needs no
	// snapshot: it stores one of its own that stands for the events. A later load of the aggregate
	// fails. The last removed event, before-1, must be the last one of a commit. Trim may be
	// repeated.
	//
	// It costs as much as Journal.Truncate. It writes no event, and needs no encodings.
	//
	// Errors: [ErrHasState], with nothing removed, if the aggregate has a snapshot of another
	// origin, ErrNotCovered if no commit ends with event before-1, and the errors of
	// Journal.Truncate.
	Trim(ctx context.Context, id aggregate.ID, before uint64) error

	// NumberAt returns the number of the last event of an aggregate that had occurred at a time,
	// and 0 if no event had. It searches by bisection, strongly consistent, so it reads about
	// log2(n) events, 17 for 100,000. Each takes one request, or two in Packed if the event is
	// inside a commit.
	//
	// The clocks of writers differ, so an event may have an earlier date than the event before it.
	// Several numbers may then be right, and the result is one of them.
	//
	// Errors: *TruncatedError if the event was removed, and the errors of Journal.Events.
	NumberAt(ctx context.Context, head journal.Head, t time.Time) (uint64, error)

	// ShardHeads yields the heads of one logical shard without their snapshots, in a stable order.
	// It reads a page only when it is needed, so the caller controls the pace. In Classic a page is
	// up to 1 MB of the snapshot table, in the order of the sort keys. In Packed it is up to 200
	// aggregates of the index of aggregates, in the order of their ids, and the last commit of each
	// is read separately.
	//
	// Unless the query is Consistent, it reads eventually consistent, so recent writes may be
	// missing. The index of aggregates is always eventually consistent, so in Packed a new
	// aggregate may be missing in any case. Heads that cannot be decoded go to corrupt.
	//
	// Errors: ErrThrottled, ErrTableMissing, ErrAccess, and the error of ctx.
	ShardHeads(ctx context.Context, q HeadsOfShard, corrupt func(*journal.CorruptItemError)) iter.Seq2[[]journal.Head, error]

	// Inspect reads everything that the tables hold of an aggregate, not only the events up to the
	// version of the head. It calls each with every event of the aggregate in the journal table,
	// and lists in the inspection the items that cannot be decoded. The events come in the order of
	// their keys: as text in Classic, as numbers in Packed. All reads are strongly consistent.
	//
	// Head and events are separate reads, so a commit or a removal that is under way can be partly
	// visible. A fault counts only if another inspection finds it again a little later.
	//
	// Errors: ErrTableMissing, ErrThrottled, ErrAccess, *aggregate.InvalidIDError, and the error of
	// ctx.
	Inspect(ctx context.Context, id aggregate.ID, each func(*journal.Record)) (Inspection, error)

	// Strays yields items of the journal table that no reader finds. In Classic these are events
	// whose aggregate has no head or belongs to another shard, and unknown items. In Packed they
	// are events of an aggregate without event 1, items that an index has in another shard, and
	// items whose keys name no event. It may yield only one of the events of an aggregate.
	//
	// It scans the table, eventually consistent, and reads the head, or event 1, of the aggregates
	// on a page. With an aggregateType, Classic reads only the shards of that type; Packed scans
	// the whole table.
	//
	// The first error ends the sequence: ErrTableMissing, ErrThrottled, ErrAccess, or the error of
	// ctx.
	Strays(ctx context.Context, aggregateType string) iter.Seq2[*journal.CorruptItemError, error]
}
