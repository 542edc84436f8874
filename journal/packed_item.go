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
	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/internal/storage"
)

// packedItem is an item of an aggregate under a positive number: a commit or a part of one, a
// placeholder, or a tombstone.
type packedItem struct {
	table, partition, number, time string // its place, also in the tail index, as it is stored

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
	tailed   bool // it is in the tail index
}

// between is the events from one to another, both included.
type between struct{ first, last uint64 }

// last is the number of the aggregate's last event as far as this item tells.
func (it *packedItem) last() uint64 {
	return it.first + it.count - 1
}

func (it *packedItem) place() [2]string { return [2]string{it.partition, it.number} }

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

// readItem is an item that was read. Its place is known also where it cannot be read otherwise.
type readItem struct {
	item *packedItem
	err  error
}

// parse reads an item; what a projection left out is as if the item did not have it.
func (p *packed) parse(it item) (*packedItem, error) {
	read := p.parseRow(rows.Of(it))
	if read.err != nil {
		return nil, read.err
	}
	return read.item, nil
}

func (p *packed) parseRow(row rows.Row) readItem {
	it := &packedItem{table: p.config.Tables.Journal}
	return readItem{it, it.parse(row, p.config.Attributes)}
}

func (it *packedItem) parse(row rows.Row, names Attributes) error {
	var commit rows.Attribute
	var small, large, noted []byte
	counted := false
	for i := range row {
		switch a := &row[i]; a.Name {
		case names.PartitionKey:
			it.partition = textOf(a)
		case names.SortKey:
			it.number = digitsOf(a)
		case attrCommit:
			commit = *a
		case attrID:
			it.command = textOf(a)
		case attrTime:
			it.time = digitsOf(a)
			if millis, err := strconv.ParseInt(it.time, 10, 64); err == nil {
				it.millis = millis
			}
		case attrCount:
			var err error
			it.count, err = strconv.ParseUint(digitsOf(a), 10, 64)
			counted = err == nil && it.count <= mostEvents
		case attrSmall:
			small = bytesIn(a)
		case attrLarge:
			large = bytesIn(a)
		case attrSize:
			it.size = int(min(wholeOf(a), storage.MaxItemBytes>>10)) //nolint:gosec // it is small
		case attrFirst:
			it.partOf.first = wholeOf(a)
		case attrLast:
			it.partOf.last = wholeOf(a)
		case attrBefore:
			it.before = wholeOf(a)
		case attrDeleted:
			if millis, err := strconv.ParseInt(digitsOf(a), 10, 64); err == nil {
				it.deleted = time.UnixMilli(millis).UTC()
			}
		case attrTail:
			it.tailed = true
		case attrGuards:
			it.guards = true
		case attrNoted:
			noted = bytesIn(a)
		}
	}
	if it.events = large; large == nil {
		it.events = small
	}
	var ok bool
	if it.id, ok = idOf(it.partition); !ok {
		return it.corrupt("has a partition key that names no aggregate")
	}
	first, err := strconv.ParseUint(it.number, 10, 64)
	if err != nil || first == 0 || first > math.MaxInt64 {
		return it.corrupt("has a sort key that is not the number of an event")
	}
	it.first = first
	if it.commit, it.commitID, ok = commitIn(&commit); !ok {
		return it.corrupt("has no commit id in " + attrCommit)
	}
	if !counted {
		return it.corrupt("has no number of events in " + attrCount)
	}
	if noted != nil {
		if err := unmarshalCommands(noted, &it.noted); err != nil {
			return it.corrupt(fmt.Sprintf("has command ids that cannot be read: %v", err))
		}
	}
	if it.isTombstone() && it.count > 0 || it.isPlaceholder() && it.noted == nil && !it.guards {
		return it.corrupt("has no events and is no tombstone, or both")
	}
	return nil
}

// textOf returns a text, digitsOf a number as it is stored, and bytesIn a binary value, each empty
// where an attribute is of another kind.
func textOf(a *rows.Attribute) string {
	if a.Kind != rows.Text {
		return ""
	}
	return a.Text
}

func digitsOf(a *rows.Attribute) string {
	if a.Kind != rows.Number {
		return ""
	}
	return a.Text
}

func bytesIn(a *rows.Attribute) []byte {
	if a.Kind != rows.Binary {
		return nil
	}
	return a.Binary
}

// wholeOf returns a number, 0 where an attribute is not one from 0 on.
func wholeOf(a *rows.Attribute) uint64 {
	n, err := strconv.ParseUint(digitsOf(a), 10, 64)
	if err != nil {
		return 0
	}
	return n
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
	a := rows.AttributeOf(attrCommit, v)
	return commitIn(&a)
}

func commitIn(a *rows.Attribute) (commit, commitID string, ok bool) {
	switch a.Kind {
	case rows.Binary:
		id, err := uuid.FromBytes(a.Binary)
		text := id.String()
		return text, text, err == nil
	case rows.Text:
		if id, ok := strings.CutPrefix(a.Text, markText); ok && id != "" {
			return a.Text, id, true
		}
		return a.Text, "", strings.HasPrefix(a.Text, markForeign)
	}
	return "", "", false
}
