package journal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Layout selects how a journal stores events and snapshots in its tables. It is chosen when the
// tables are created, and never changes.
type Layout string

// Classic is the layout of the event-store-adapter family: the latest snapshot is in the head, and
// the snapshot table has an index by aggregate. It is the default.
const Classic Layout = "classic"

// Packed is the layout with one item for each commit. Only programs of this module can use such
// tables. A commit of a few small events costs two write units, a fifth of its cost in the layout
// [Classic]. The first commit of an aggregate costs one more; see docs/reference/cost.md.
const Packed Layout = "packed"

// layoutKind describes a layout and constructs it.
type layoutKind struct {
	name     Layout
	constant string // its name in Go
	layout   func(*store) layout
	check    func(Config) error // checks settings for this layout; nil if there is nothing to check
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
	// names returns the names in Config.Attributes that the layout uses.
	names func(Attributes) []string
}

// layoutKinds lists all layouts. [Open] tries them in this order if config names none.
var layoutKinds = []layoutKind{
	{
		name: Classic, constant: "journal.Classic", layout: newClassic, groupBytes: storage.MaxEventsBytes, eventsApart: true, stateAtFirst: true,
		names: func(a Attributes) []string {
			return []string{a.PartitionKey, a.SortKey, a.AggregateID, a.SequenceNumber, a.Payload, a.OccurredAt, a.Version, a.TTL}
		},
	},
	{
		name: Packed, constant: "journal.Packed", layout: newPacked, check: checkPacked, groupBytes: packedGroupBytes,
		tailByWriteTime: true, snapshotsApart: true,
		names: func(a Attributes) []string { return []string{a.PartitionKey, a.SortKey, a.TTL} },
	},
}

// validate returns an error if l is not a layout, or if c does not suit it.
func (l Layout) validate(c Config) error {
	constants := make([]string, len(layoutKinds))
	for i, kind := range layoutKinds {
		if kind.name == l && kind.check != nil {
			return kind.check(c)
		}
		if kind.name == l {
			return nil
		}
		constants[i] = kind.constant
	}
	return &ConfigError{Field: "Layout", Reason: fmt.Sprintf("is %q: use %s", string(l), strings.Join(constants, " or "))}
}

// kind returns the description of the engine's layout.
func (j *engine) kind() layoutKind {
	return layoutKinds[slices.IndexFunc(layoutKinds, func(k layoutKind) bool { return k.name == j.config.Layout })]
}

func (j *engine) GroupBytes() int { return j.kind().groupBytes }

func (j *engine) StateAtFirst() bool { return j.kind().stateAtFirst }

func (j *engine) TailByWriteTime() bool { return j.kind().tailByWriteTime }

func (j *engine) SnapshotsApart() bool { return j.kind().snapshotsApart }

func (j *engine) AttributeNames() []string { return j.kind().names(j.config.Attributes) }

// use selects a layout that validate accepts.
func (j *engine) use(name Layout) {
	for _, kind := range layoutKinds {
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
	restore(ctx context.Context, r *restoration) (storage.Receipt, error)
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
	isOwn(c *commit, table string, key item) bool

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
	// load implements Load of eventlog.Engine for payloads in stored form.
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
	tail(ctx context.Context, q storage.TailQuery) (tailPage, error)
	// newest yields up to limit entries of each partition of the tail, newest first, in pages.
	newest(ctx context.Context, aggregateType string, limit int, yield func(tailPage) error) error
	// heads yields heads without snapshots, in a stable order. pages chooses the page sizes.
	heads(ctx context.Context, q HeadsQuery, pages *headPages, yield func(Head) bool) error
	// shardHeads yields the heads of a shard in pages. Heads that cannot be decoded go to corrupt.
	shardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*CorruptItemError), yield func([]Head) bool) error

	// Verification.

	// inspect reads everything that the tables hold of an aggregate, including corrupt items.
	inspect(ctx context.Context, id aggregate.ID, found *inspection, each func(*Record)) error
	// strays yields items that the tables hold but no reader finds.
	strays(ctx context.Context, aggregateType string, yield func(*CorruptItemError) bool) error
}
