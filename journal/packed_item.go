package journal

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// packedItem is an item of an aggregate under a positive number: a commit or a part of one, a
// placeholder, or a tombstone.
type packedItem struct {
	table, partition, number string // its place, for errors

	id       aggregate.ID
	first    uint64 // its first event, or the one that would be
	count    uint64 // of events
	commit   string // the commit's id as it is stored, which is never empty
	commitID string // empty where an imported event had none
	command  string
	noted    []keptCommand // without events, just before
	guards   bool
	millis   int64
	events   []byte  // nil where they are removed or were not read
	size     int     // of an item that the tail index has without its events, in KB
	partOf   between // the whole commit, zero where the item is that
	before   uint64
	deleted  time.Time
}

// between is the events from one to another, both included.
type between struct{ first, last uint64 }

// last is the number of the aggregate's last event as far as this item tells.
func (it *packedItem) last() uint64 {
	return it.first + it.count - 1
}

func (it *packedItem) isTombstone() bool { return !it.deleted.IsZero() }

func (it *packedItem) isPlaceholder() bool { return it.count == 0 && !it.isTombstone() }

// lacksEvents: they are removed, or not in the index, or were not asked for.
func (it *packedItem) lacksEvents() bool { return it.count > 0 && it.events == nil }

// isTorn reports that more items of the same commit follow.
func (it *packedItem) isTorn() bool { return it.partOf.last > it.last() }

func (it *packedItem) deletedError() error {
	return &DeletedError{ID: it.id, Version: it.last(), At: it.deleted}
}

func (it *packedItem) corrupt(reason string) *CorruptItemError {
	err := &CorruptItemError{Table: it.table, PartitionKey: it.partition, SortKey: it.number, Reason: reason}
	if it.first > 0 {
		err.Aggregate, err.Number = it.id, it.first
	}
	return err
}

// mostEvents is more than an aggregate has, and the sum of two such numbers is a number too.
const mostEvents = 1 << 62

// parse reads an item; what a projection left out is as if the item did not have it.
func (p *packed) parse(it item) (*packedItem, error) {
	parsed := &packedItem{table: p.config.Tables.Journal}
	parsed.partition, parsed.number = p.placeOf(it)
	var ok bool
	if parsed.id, ok = idOf(parsed.partition); !ok {
		return nil, parsed.corrupt("has a partition key that names no aggregate")
	}
	first, err := strconv.ParseUint(parsed.number, 10, 64)
	if err != nil || first == 0 || first > math.MaxInt64 {
		return nil, parsed.corrupt("has a sort key that is not the number of an event")
	}
	parsed.first = first
	if parsed.commit, parsed.commitID, ok = commitOf(it[attrCommit]); !ok {
		return nil, parsed.corrupt("has no commit id in " + attrCommit)
	}
	parsed.command, _ = stringOf(it[attrID])
	parsed.millis, _ = intOf(it[attrTime])
	if parsed.count, ok = uintOf(it[attrCount]); !ok || parsed.count > mostEvents {
		return nil, parsed.corrupt("has no number of events in " + attrCount)
	}
	for _, name := range []string{attrSmall, attrLarge} {
		if b, ok := it[name].(*types.AttributeValueMemberB); ok {
			parsed.events = b.Value
		}
	}
	size, _ := uintOf(it[attrSize])
	parsed.size = int(min(size, storage.MaxItemBytes>>10)) //nolint:gosec // it is small
	parsed.partOf.first, _ = uintOf(it[attrFirst])
	parsed.partOf.last, _ = uintOf(it[attrLast])
	parsed.before, _ = uintOf(it[attrBefore])
	if millis, ok := intOf(it[attrDeleted]); ok {
		parsed.deleted = time.UnixMilli(millis).UTC()
	}
	if noted, ok := it[attrNoted].(*types.AttributeValueMemberB); ok {
		if err := unmarshalCommands(noted.Value, &parsed.noted); err != nil {
			return nil, parsed.corrupt(fmt.Sprintf("has command ids that cannot be read: %v", err))
		}
	}
	parsed.guards = it[attrGuards] != nil
	if parsed.isTombstone() && parsed.count > 0 || parsed.isPlaceholder() && parsed.noted == nil && !parsed.guards {
		return nil, parsed.corrupt("has no events and is no tombstone, or both")
	}
	return parsed, nil
}

// A commit id is stored as 16 bytes where it is a UUID. Text has a mark in front: that of ids which
// are no UUID, or that of a commit which was imported and had none.
const (
	markText    = "="
	markForeign = "-"
)

func commitValue(commitID string) types.AttributeValue {
	switch id := packID(commitID).(type) {
	case []byte:
		return binaryValue(id)
	default:
		if commitID == "" {
			return stringValue(markForeign + uuid.NewString())
		}
		return stringValue(markText + commitID)
	}
}

// commitOf returns the commit id as a unique key, and as the caller gave it, empty if it had none.
func commitOf(v types.AttributeValue) (commit, commitID string, ok bool) {
	switch v := v.(type) {
	case *types.AttributeValueMemberB:
		id, err := uuid.FromBytes(v.Value)
		return id.String(), id.String(), err == nil
	case *types.AttributeValueMemberS:
		if id, ok := strings.CutPrefix(v.Value, markText); ok && id != "" {
			return v.Value, id, true
		}
		return v.Value, "", strings.HasPrefix(v.Value, markForeign)
	}
	return "", "", false
}
