package packed

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// layout implements engine.Layout.
type layout struct {
	*table.Table
	tailing    partitions
	compresses bool // new events and states
	guarded    guarded
}

// groupBytes bounds the size of an item with the events of independent messages. An item is
// also the unit of reading.
const groupBytes = 32 << 10

// Kind is the layout journal.Packed.
var Kind = engine.Kind{
	Name:   journaltype.Packed,
	New:    func(t *table.Table) engine.Layout { return &layout{Table: t} },
	Traits: engine.Traits{GroupBytes: groupBytes, TailByWriteTime: true, SnapshotsApart: true},
	Check:  check,
}

func (p *layout) AttributeNames() []string {
	a := p.Config.Attributes
	return []string{a.PartitionKey, a.SortKey, a.TTL}
}

// Attributes of the packed layout. Each item includes their names, so they are short.
const (
	attrCommit = "c" // the id of the commit: binary for a UUID
	attrCount  = "n" // the number of events; on a snapshot, the number of its last event
	attrTime   = "t" // when the item was written, in milliseconds
	attrTail   = "p" // the tail partition; absent after the events were removed
	attrSmall  = "e" // the events, if the item has up to projectedBytes
	attrLarge  = "E" // the events otherwise; the tail index does not contain them
	attrSize   = "z" // beside attrLarge: the size of the item in KB before compression
	attrID     = "k" // the command id; on a snapshot, all command ids that it keeps
	// attrHold is beside attrID of a commit: for how many seconds the command id is kept. It is
	// absent for an id that is kept forever.
	attrHold   = "h"
	attrListed = "a" // on the item of event 1: its place in the index of aggregates
	// attrFirst is the first event of a commit with several items, or of the commit that a snapshot
	// ends with.
	attrFirst   = "f"
	attrLast    = "l" // the last event of that commit
	attrBefore  = "b" // on the item of event 1 and on snapshot -1: earlier events are removed
	attrBlank   = "m" // on the item of event 1: no item that ends before this number has events
	attrDeleted = "d" // on a tombstone: when it was written, in milliseconds
	attrState   = "s" // the state of a snapshot
	attrSchema  = "v"
	attrApplied = "x" // the encodings of a snapshot, or compressedState
	attrKept    = "r" // on the latest snapshot: the numbers of the redundant snapshots
	// on a placeholder or a commit: the commands without events directly before it
	attrNoted  = "o"
	attrGuards = "g" // on the latest snapshot, or beside attrNoted: some command ids have guards
)

// projectedBytes is the largest item that the tail index contains whole, as it is before
// compression. An index entry costs one write unit for each KB.
const projectedBytes = 1 << 10

// Numbers of the latest snapshot, and of the snapshot that stands for truncated events.
const (
	latestSnapshot = 0
	baseSnapshot   = -1
)

// typeKey returns an aggregate type as keys contain it. A type has no control characters, so the
// replacement of a slash is not in any other type. The first slash of a key follows the type.
func typeKey(aggregateType string) string { return strings.ReplaceAll(aggregateType, "/", "\x1f") }

func partitionOf(id aggregate.ID) string { return typeKey(id.Type) + "/" + id.Value }

func partKey(aggregateType string, part int) string {
	return typeKey(aggregateType) + "/" + strconv.Itoa(part)
}

// idOf reverses partitionOf.
func idOf(partition string) (aggregate.ID, bool) {
	kind, value, ok := strings.Cut(partition, "/")
	id := aggregate.ID{Type: strings.ReplaceAll(kind, "\x1f", "/"), Value: value}
	return id, ok && id.Validate() == nil
}

func (p *layout) EventOf(key table.Item) (id aggregate.ID, number uint64, ok bool) {
	partition, digits := p.placeOf(key)
	id, ok = idOf(partition)
	number, err := strconv.ParseUint(digits, 10, 64)
	return id, number, ok && err == nil && number > 0 && number < mostEvents
}

func (p *layout) keyIn(partition, number string) table.Item {
	return table.Item{
		p.Config.Attributes.PartitionKey: table.StringValue(partition),
		p.Config.Attributes.SortKey:      &types.AttributeValueMemberN{Value: number},
	}
}

func (p *layout) key(id aggregate.ID, number uint64) table.Item {
	return p.keyIn(partitionOf(id), strconv.FormatUint(number, 10))
}

func (p *layout) snapshotKey(id aggregate.ID, which int) table.Item {
	return p.keyIn(partitionOf(id), strconv.Itoa(which))
}

func (p *layout) DescriptorKey() table.Item { return p.keyIn(engine.DescriptorPartition, "0") }

// guardKey returns the key of the guard of a stored command id.
func (p *layout) guardKey(id aggregate.ID, stored string) table.Item {
	sum := []byte(stored)
	if !p.compresses || len(stored) != digestBytes {
		digest := engine.CommandDigest(stored)
		sum = digest[:]
	}
	number := new(big.Int).SetBytes(sum[:15]) // 120 bits are at most 37 digits, of DynamoDB's 38
	return p.keyIn(partitionOf(id), "-"+number.Add(number, big.NewInt(1)).String())
}

func (p *layout) CommandKey(commandID string) table.Item {
	return p.keyIn(engine.CommandPartition(commandID), "-1")
}

// placeOf returns the keys of an item for an error message. They are empty if they are missing.
func (p *layout) placeOf(it table.Item) (partition, number string) {
	partition, _ = table.StringOf(it[p.Config.Attributes.PartitionKey])
	if n, ok := it[p.Config.Attributes.SortKey].(*types.AttributeValueMemberN); ok {
		number = n.Value
	}
	return partition, number
}

func (p *layout) corrupt(name string, it table.Item, reason string) *journaltype.CorruptItemError {
	partition, number := p.placeOf(it)
	return &journaltype.CorruptItemError{Table: name, PartitionKey: partition, SortKey: number, Reason: reason}
}

func (p *layout) Tables() []*dynamodb.CreateTableInput {
	a, x, t := p.Config.Attributes, p.Config.Indexes, p.Config.Tables
	keys := []types.AttributeDefinition{table.TextKey(a.PartitionKey), table.NumberKey(a.SortKey)}
	tail, listed := p.Index(x.JournalTail, attrTail, attrTime), p.Index(x.JournalAggregate, attrListed, a.PartitionKey)
	tail.Projection = including(attrCommit, attrCount, attrSmall, attrSize)
	listed.Projection = including(attrBefore)
	return []*dynamodb.CreateTableInput{
		p.TableInput(t.Journal, slices.Concat(keys, []types.AttributeDefinition{table.TextKey(attrTail), table.NumberKey(attrTime), table.TextKey(attrListed)}), tail, listed),
		p.TableInput(t.Snapshot, keys),
	}
}

func including(attributes ...string) *types.Projection {
	return &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: attributes}
}

// check refuses each option that is set. All packed tables have the same names, resolver and unit.
func check(given journaltype.ClassicOptions) error {
	for _, option := range []struct {
		field string
		set   bool
	}{
		{"Attributes", given.Attributes != journaltype.Attributes{}},
		{"Indexes", given.Indexes != journaltype.Indexes{}},
		{"Resolver", given.Resolver != nil},
		{"OccurredAtUnit", given.OccurredAtUnit != 0},
	} {
		if option.set {
			return &journaltype.ConfigError{Field: "Classic." + option.field, Reason: "is set, which only the layout Classic supports: leave it empty for Packed"}
		}
	}
	return nil
}
