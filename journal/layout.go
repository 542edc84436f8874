package journal

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// kind describes a layout and constructs it.
type kind struct {
	name   Layout
	layout func(*store) layout
	check  func(*tableSettings) error // checks settings for this layout; nil if there is nothing to check
	// reserved are the names of attributes that the layout adds to those of tableSettings.
	reserved []reserved
}

// reserved is the name of an attribute, and what it is for.
type reserved struct{ what, name string }

// traits are what callers must know of a layout.
type traits struct {
	// groupBytes bounds the size of the events of a commit that groups independent messages.
	groupBytes int
	// eventsApart means that each event is an item of its own, and so is the head.
	eventsApart bool
	// stateAtFirst means that programs of the family expect a state with the first event.
	stateAtFirst bool
	// tailByWriteTime means that the tail is in the order in which events were written, not in the
	// order of their dates.
	tailByWriteTime bool
	// snapshotsApart means that a snapshot is written after its commit, and must end with the last
	// event of an item.
	snapshotsApart bool
}

// GroupBytes returns the largest size of a commit that groups independent messages, in bytes of
// events as EventSize counts them.
func (j *engine) GroupBytes() int { return j.layout.traits().groupBytes }

// StateAtFirst reports whether the first commit of an aggregate must store a snapshot, because
// other programs that share the tables expect one.
func (j *engine) StateAtFirst() bool { return j.layout.traits().stateAtFirst }

// TailByWriteTime reports whether the tail is in the order in which events were written, except
// for differences of clocks and delays of the index and of requests. If not, an import or
// another program can add events at any place of the tail.
func (j *engine) TailByWriteTime() bool { return j.layout.traits().tailByWriteTime }

// SnapshotsApart reports whether a snapshot is written after its commit, in a separate request,
// and only if it includes the last event of the commit.
func (j *engine) SnapshotsApart() bool { return j.layout.traits().snapshotsApart }

// AttributeNames returns the names in journal.Config.Attributes that the layout uses.
func (j *engine) AttributeNames() []string { return j.layout.attributeNames() }

// use selects one of the layouts.
func (j *engine) use(name Layout) {
	for _, kind := range j.kinds {
		if kind.name == name {
			j.config.Layout, j.layout = name, kind.layout(j.store)
		}
	}
}

// layout stores an aggregate in items of DynamoDB. The engine validates arguments, encodes and
// decodes payloads, and adds to errors what failed. So ids are valid here, payloads are in stored
// form, and errors of DynamoDB are those of package dynamo.
//
// A method that yields may return errStop, or nil, after yield has returned false.
type layout interface {
	traits() traits
	// attributeNames returns the names in tableSettings.Attributes that the layout uses.
	attributeNames() []string

	// Tables.

	// tables returns the tables of events and snapshots as they should be. The first one holds the
	// descriptor.
	tables() []*dynamodb.CreateTableInput
	// descriptorKey returns the key of the descriptor. No other item has this key.
	descriptorKey() item

	// opened receives the stored descriptor and the time at which it was read.
	opened(d descriptor, asOf time.Time)
	// grow adds partitions to the tail. Writers use them from the time since.
	grow(ctx context.Context, partitions int) (since time.Time, err error)
	// tailFactor returns the number of tail partitions of each shard.
	tailFactor(context.Context) (int, error)

	// Commits.

	// part makes a commit, after reading what it needs. The receipt is the draft's receipt, with
	// the outcome of storing the snapshot.
	part(ctx context.Context, d draft) (part, error)
	// unchanged returns a [*ConflictError] if an aggregate is not at its version. It reads all of
	// them at once.
	unchanged(ctx context.Context, places []storage.Place) error
	// commandKey returns the key of the guard of a command for several aggregates.
	commandKey(commandID string) item
	// restore writes events with their original values. If the table has the same events, it
	// succeeds.
	restore(ctx context.Context, r *storage.Restoration) (storage.Receipt, error)
	// lookFor reports whether a commit was written, and whether its command was executed, by this
	// commit or by another one.
	lookFor(ctx context.Context, unknown *OutcomeUnknownError) (written, executed bool, err error)
	// command returns the commit of a command. It returns false if the aggregate has no such
	// command.
	command(ctx context.Context, id aggregate.ID, commandID string) (storage.Command, bool, error)
	// eventSize returns the largest number of bytes that an event takes of [storage.MaxItemBytes].
	// Overhead is the largest number of bytes that encodings add.
	eventSize(id aggregate.ID, e storage.Event, overhead int) int
	// isOwn reports whether the commit itself writes the item with that key. The caller's writes
	// may not name such an item.
	isOwn(c *storage.Commit, table string, key item) bool

	// Removal.

	truncate(ctx context.Context, id aggregate.ID, before uint64, removal Removal) error
	// trim truncates an aggregate without a snapshot. The given state stands for its events from
	// then on.
	trim(ctx context.Context, id aggregate.ID, before uint64, state *Snapshot) error
	delete(ctx context.Context, id aggregate.ID, expected uint64, removal Removal) error
	// removeSnapshots deletes redundant snapshots. The numbers ascend, and none is 0.
	removeSnapshots(ctx context.Context, id aggregate.ID, numbers []uint64) error

	// Reads of one aggregate.

	// head also returns the head of a deleted aggregate.
	head(ctx context.Context, id aggregate.ID) (Head, error)
	// load implements engine.Load for payloads in stored form.
	load(ctx context.Context, id aggregate.ID, begin func(Head) (uint64, error), apply func(*Record) error) (storage.Loaded, error)
	// version returns a [*DeletedError] for a deleted aggregate.
	version(ctx context.Context, id aggregate.ID) (uint64, error)
	// events yields the events with the numbers from..to in order. It yields all of them or returns
	// an error.
	events(ctx context.Context, id aggregate.ID, from, to uint64, yield func(*Record) bool) error
	// snapshotBefore returns the latest redundant snapshot of event number or an earlier event. It
	// returns nil if there is none.
	snapshotBefore(ctx context.Context, head Head, number uint64) (*Snapshot, error)
	// encodingAt returns the encodings of an event, or of the snapshot if the event was removed.
	encodingAt(ctx context.Context, id aggregate.ID, number uint64) (names string, err error)

	// Reads of many aggregates.

	// tail reads a page of a shard's events in the order of their times.
	tail(ctx context.Context, q storage.TailQuery) (storage.TailPage, error)
	// newest yields up to limit entries of each partition of the tail, newest first, in pages.
	newest(ctx context.Context, aggregateType string, limit int, yield func(storage.TailPage) error) error
	// heads yields heads without snapshots, in a stable order. pages chooses the page sizes.
	heads(ctx context.Context, q HeadsQuery, pages *headPages, yield func(Head) bool) error
	// shardHeads yields the heads of a shard in pages. Heads that cannot be decoded go to corrupt.
	shardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*CorruptItemError), yield func([]Head) bool) error

	// Verification.

	// inspect reads everything that the tables hold of an aggregate, including corrupt items.
	inspect(ctx context.Context, id aggregate.ID, found *storage.Inspection, each func(*Record)) error
	// strays yields items that the tables hold but no reader finds.
	strays(ctx context.Context, aggregateType string, yield func(*CorruptItemError) bool) error
}
