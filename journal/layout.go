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

// Layout says how a journal stores events and snapshots in its tables. It is chosen when the tables
// are created, and never changes.
type Layout string

// Classic is the layout of the event-store-adapter family: the latest snapshot is in the head, and
// the snapshot table has an index by aggregate. It is the default.
const Classic Layout = "classic"

// Packed is the layout with one item for each commit. It is for tables that belong to programs of
// this module alone. A commit of a few small events costs two write units, a fifth of what it
// costs in the classic layout, and one more as the first of its aggregate; see docs/reference/cost.md.
const Packed Layout = "packed"

// layoutKind describes a layout and constructs it.
type layoutKind struct {
	name     Layout
	constant string // its name in Go
	layout   func(*store) layout
	check    func(Config) error // beyond what every layout needs, nil for nothing
	// groupBytes bounds the events of a commit that groups what could as well be several commits.
	groupBytes int
	// eventsApart: each event is an item of its own, and so is the head.
	eventsApart bool
	// stateAtFirst: programs of the family expect a state with the first event.
	stateAtFirst bool
	// tailByWriteTime: the tail is in the order in which events were written, not that of their
	// dates.
	tailByWriteTime bool
	// snapshotsApart: a snapshot is written after its commit, and needs an item that ends with its
	// last event.
	snapshotsApart bool
	// names are those of Config.Attributes that it uses.
	names func(Attributes) []string
}

// layoutKinds are all layouts, in the order in which [Open] tries them where the config names none.
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

// validate reports whether there is such a layout, and whether a config suits it.
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

// kind returns what there is to know of the engine's layout.
func (j *engine) kind() layoutKind {
	return layoutKinds[slices.IndexFunc(layoutKinds, func(k layoutKind) bool { return k.name == j.config.Layout })]
}

func (j *engine) GroupBytes() int { return j.kind().groupBytes }

func (j *engine) StateAtFirst() bool { return j.kind().stateAtFirst }

func (j *engine) TailByWriteTime() bool { return j.kind().tailByWriteTime }

func (j *engine) SnapshotsApart() bool { return j.kind().snapshotsApart }

func (j *engine) AttributeNames() []string { return j.kind().names(j.config.Attributes) }

// use makes the engine store by a layout that validate accepts.
func (j *engine) use(name Layout) {
	for _, kind := range layoutKinds {
		if kind.name == name {
			j.config.Layout, j.layout = name, kind.layout(j.store)
		}
	}
}

// layout is how an engine stores an aggregate in DynamoDB's items. The engine validates what it is
// given, encodes and decodes payloads, and adds to errors what it was doing. So ids are valid here,
// payloads are as they are stored, and errors of DynamoDB are those of package dynamo.
//
// A method that yields may return errStop, or nil, after yield has returned false.
type layout interface {
	// Tables.

	// tables returns the tables of events and snapshots as they should be. The first one has the
	// descriptor.
	tables() []*dynamodb.CreateTableInput
	// descriptorKey returns the key of the descriptor, which is never that of another item.
	descriptorKey() item

	// opened receives the stored descriptor, and the time at which it was read.
	opened(d descriptor, asOf time.Time)
	// grow adds partitions to the tail. Writers use them from since on.
	grow(ctx context.Context, partitions int) (since time.Time, err error)
	// tailFactor is how many partitions of the tail each shard has.
	tailFactor(context.Context) (int, error)

	// Commits.

	// part makes a commit, and reads before that what it needs. The receipt will be that of the
	// draft, with what became of the snapshot.
	part(ctx context.Context, d draft) (part, error)
	// unchanged returns a [*ConflictError] for an aggregate that is not at its version, by one read
	// of all of them.
	unchanged(ctx context.Context, places []storage.Place) error
	// commandKey is where the guard is of a command of several aggregates.
	commandKey(commandID string) item
	// restore writes events as they were. The same events in the table are success.
	restore(ctx context.Context, r *restoration) (storage.Receipt, error)
	// lookFor reports whether a commit was written, and whether its command was executed, by this
	// commit or by another one.
	lookFor(ctx context.Context, unknown *OutcomeUnknownError) (written, executed bool, err error)
	// command returns the commit of a command, and false if the aggregate has no such command.
	command(ctx context.Context, id aggregate.ID, commandID string) (storage.Command, bool, error)
	// eventSize returns the most bytes that an event takes of [storage.MaxItemBytes]. Overhead is
	// the most that encodings add.
	eventSize(id aggregate.ID, e storage.Event, overhead int) int
	// isOwn reports whether the commit itself writes the item that one of the caller's writes
	// names.
	isOwn(c *commit, table string, key item) bool

	// Removal.

	truncate(ctx context.Context, id aggregate.ID, before uint64, removal Removal) error
	// trim truncates an aggregate without a snapshot, for which the given one stands from then on.
	trim(ctx context.Context, id aggregate.ID, before uint64, state *Snapshot) error
	delete(ctx context.Context, id aggregate.ID, expected uint64, removal Removal) error
	// removeSnapshots deletes redundant snapshots. The numbers ascend, and none is 0.
	removeSnapshots(ctx context.Context, id aggregate.ID, numbers []uint64) error

	// Reads of one aggregate.

	// head also returns the head of a deleted aggregate.
	head(ctx context.Context, id aggregate.ID) (Head, error)
	// load reads what eventlog.Engine calls Load, in the form in which it is stored.
	load(ctx context.Context, id aggregate.ID, begin func(Head) (uint64, error), apply func(*Record) error) (storage.Loaded, error)
	// version returns a [*DeletedError] for a deleted aggregate.
	version(ctx context.Context, id aggregate.ID) (uint64, error)
	// events yields the events with the numbers from..to in order, all of them or an error.
	events(ctx context.Context, id aggregate.ID, from, to uint64, yield func(*Record) bool) error
	// snapshotBefore returns the latest redundant snapshot that is of event number or an earlier
	// one, and nil if there is none.
	snapshotBefore(ctx context.Context, head Head, number uint64) (*Snapshot, error)
	// encodingAt returns what was applied to an event, or to the snapshot if the event was removed.
	encodingAt(ctx context.Context, id aggregate.ID, number uint64) (names string, err error)

	// Reads of many aggregates.

	// tail reads a page of a shard's events in the order of their time.
	tail(ctx context.Context, q storage.TailQuery) (tailPage, error)
	// newest yields up to limit entries of each partition of the tail, newest first, in pages.
	newest(ctx context.Context, aggregateType string, limit int, yield func(tailPage) error) error
	// heads yields heads without snapshots, in an order that stays the same. Pages have sizes.
	heads(ctx context.Context, q HeadsQuery, pages *headPages, yield func(Head) bool) error
	// shardHeads yields the heads of a shard in pages. Heads that cannot be read go to corrupt.
	shardHeads(ctx context.Context, q storage.HeadsOfShard, corrupt func(*CorruptItemError), yield func([]Head) bool) error

	// Verification.

	// inspect reads what the tables hold of an aggregate, sound or not.
	inspect(ctx context.Context, id aggregate.ID, found *inspection, each func(*Record)) error
	// strays yields what the tables hold and no reader finds.
	strays(ctx context.Context, aggregateType string, yield func(*CorruptItemError) bool) error
}
