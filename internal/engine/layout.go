package engine

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Kind describes a layout and constructs it.
type Kind struct {
	Name   journaltype.Layout
	New    func(*table.Table) Layout
	Traits Traits
	// Check refuses options that are set and that the layout does not have. It is nil for a layout
	// that has all of them.
	Check func(given journaltype.ClassicOptions) error
	// Reserved are the names of attributes that the layout adds to those of table.Settings.
	Reserved []Reserved
}

// Reserved is the name of an attribute, and what it is for.
type Reserved struct{ What, Name string }

// Traits are what callers must know of a layout.
type Traits struct {
	// GroupBytes is the largest size of a commit that groups independent messages, in bytes of
	// events as EventSize counts them.
	GroupBytes int
	// EventsApart means that each event is an item of its own, and so is the head.
	EventsApart bool
	// StateAtFirst means that the first commit of an aggregate must store a snapshot, because other
	// programs that share the tables expect one.
	StateAtFirst bool
	// TailByWriteTime means that the tail is in the order in which events were written, except for
	// differences of clocks and delays of the index and of requests. Otherwise an import or another
	// program can add events at any place of the tail.
	TailByWriteTime bool
	// SnapshotsApart means that a snapshot is written after its commit, in a separate request, and
	// only if it includes the last event of the commit.
	SnapshotsApart bool
}

// AttributeNames returns the names in journal.ClassicOptions.Attributes that the layout uses.
func (j *Engine) AttributeNames() []string { return j.Layout.AttributeNames() }

// use selects one of the layouts.
func (j *Engine) use(name journaltype.Layout) {
	for _, kind := range j.kinds {
		if kind.Name == name {
			j.Config.Layout, j.Traits, j.Layout = name, kind.Traits, kind.New(j.Table)
		}
	}
}

// Layout stores an aggregate in items of DynamoDB. The engine validates arguments, encodes and
// decodes payloads, and adds to errors what failed. So ids are valid here, payloads are in stored
// form, and errors of DynamoDB are those of package dynamo.
//
// A method that yields may return ErrStop, or nil, after yield has returned false.
type Layout interface {
	// AttributeNames returns the names in table.Settings.Attributes that the layout uses.
	AttributeNames() []string

	// Tables.

	// Tables returns the tables of events and snapshots as they should be. The first one holds the
	// descriptor.
	Tables() []*dynamodb.CreateTableInput
	// DescriptorKey returns the key of the descriptor. No other item has this key.
	DescriptorKey() table.Item

	// Opened receives the stored descriptor and the time at which it was read.
	Opened(d Descriptor, asOf time.Time)
	// AwaitReads waits for reads in the background. It cancels them when ctx ends.
	AwaitReads(ctx context.Context)
	// Grow adds partitions to the tail. Writers use them from the time since.
	Grow(ctx context.Context, partitions int) (since time.Time, err error)
	// TailFactor returns the number of tail partitions of each shard.
	TailFactor(context.Context) (int, error)

	// Commits.

	// Part makes a commit, after reading what it needs. The receipt is the draft's receipt, with
	// the outcome of storing the snapshot.
	Part(ctx context.Context, d Draft) (Part, error)
	// Unchanged returns a *journal.ConflictError if an aggregate is not at its version. It reads
	// all of them at once.
	Unchanged(ctx context.Context, places []storage.Place) error
	// CommandKey returns the key of the guard of a command for several aggregates.
	CommandKey(commandID string) table.Item
	// Restore writes events with their original values. If the table has the same events, it
	// succeeds.
	Restore(ctx context.Context, r *storage.Restoration) (storage.Receipt, error)
	// LookFor reports whether a commit was written, and whether its command was executed, by this
	// commit or by another one.
	LookFor(ctx context.Context, unknown *journaltype.OutcomeUnknownError) (written, executed bool, err error)
	// Command returns the commit of a command. It returns false if the aggregate has no such
	// command.
	Command(ctx context.Context, id aggregate.ID, commandID string) (storage.Command, bool, error)
	// EventSize returns the largest number of bytes that an event takes of [storage.MaxItemBytes].
	// Overhead is the largest number of bytes that encodings add.
	EventSize(id aggregate.ID, e storage.Event, overhead int) int
	// IsOwn reports whether the commit itself writes the item with that key. The caller's writes
	// may not name such an item.
	IsOwn(c *storage.Commit, tableName string, key table.Item) bool

	// Removal.

	Truncate(ctx context.Context, id aggregate.ID, before uint64, options journaltype.RemoveOptions) error
	// Trim truncates an aggregate without a snapshot. The given state stands for its events from
	// then on.
	Trim(ctx context.Context, id aggregate.ID, before uint64, state *journaltype.Snapshot) error
	Delete(ctx context.Context, id aggregate.ID, expected uint64, options journaltype.RemoveOptions) error
	// RemoveSnapshots deletes redundant snapshots. The numbers ascend, and none is 0.
	RemoveSnapshots(ctx context.Context, id aggregate.ID, numbers []uint64) error

	// Reads of one aggregate.

	// EventOf implements Engine.EventOf.
	EventOf(key table.Item) (id aggregate.ID, number uint64, ok bool)
	// Head also returns the head of a deleted aggregate.
	Head(ctx context.Context, id aggregate.ID) (journaltype.Head, error)
	// Load implements Engine.Load for payloads in stored form.
	Load(ctx context.Context, id aggregate.ID, begin func(journaltype.Head) (uint64, error), apply func(*journaltype.Record) error) (storage.Loaded, error)
	// Version returns a *journal.DeletedError for a deleted aggregate.
	Version(ctx context.Context, id aggregate.ID) (uint64, error)
	// Events yields the events with the numbers from..to in order. It yields all of them or returns
	// an error.
	Events(ctx context.Context, id aggregate.ID, from, to uint64, yield func(*journaltype.Record) bool) error
	// After implements Engine.After.
	After(ctx context.Context, id aggregate.ID, number, claimed uint64, yield func(*journaltype.Record) bool) (found uint64, err error)
	// Pays reports whether storing a snapshot of so many bytes costs less than what later loads and
	// commits save. The bytes are those of the stored row in Packed, and of the stored state in
	// Classic. If they are 0, it reports whether any snapshot might pay.
	Pays(w *storage.Worth, bytes int) bool
	// SnapshotBefore returns the latest redundant snapshot of event number or an earlier event. It
	// returns nil if there is none.
	SnapshotBefore(ctx context.Context, head journaltype.Head, number uint64) (*journaltype.Snapshot, error)
	// EncodingAt returns the encodings of an event, or of the snapshot if the event was removed.
	EncodingAt(ctx context.Context, id aggregate.ID, number uint64) (names string, err error)

	// Reads of many aggregates.

	// Tail reads a page of a shard's events in the order of their times.
	Tail(ctx context.Context, q storage.TailQuery) (storage.TailPage, error)
	// Newest yields up to limit entries of each partition of the tail, newest first, in pages.
	Newest(ctx context.Context, aggregateType string, limit int, yield func(storage.TailPage) error) error
	// Heads yields heads without snapshots, in a stable order. pages chooses the page sizes.
	Heads(ctx context.Context, q journaltype.HeadsQuery, pages *HeadPages, yield func(journaltype.Head) bool) error
	// ShardHeads yields the heads of a shard in pages. Heads that cannot be decoded go to corrupt.
	ShardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*journaltype.CorruptItemError), yield func([]journaltype.Head) bool) error

	// Verification.

	// Inspect reads everything that the tables hold of an aggregate, including corrupt items.
	Inspect(ctx context.Context, id aggregate.ID, found *storage.Inspection, each func(*journaltype.Record)) error
	// Strays yields items that the tables hold but no reader finds.
	Strays(ctx context.Context, aggregateType string, yield func(*journaltype.CorruptItemError) bool) error
}
