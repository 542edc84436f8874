package packed

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
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// item is an item of an aggregate under a positive number: a commit or a part of one, a
// placeholder, or a tombstone.
type item struct {
	// the keys in the table and in the tail index, as they are stored
	table, partition, number, time string

	id       aggregate.ID
	first    uint64 // the number of its first event; without events, of the next event
	count    uint64 // of events
	commit   string // the commit id as it is stored; never empty
	commitID string // empty if an imported event had none
	command  string
	hold     uint64        // the seconds for which command is kept; 0 for forever
	noted    []keptCommand // commands without events directly before it
	guards   bool
	millis   int64
	events   []byte  // as they are stored; nil if they were removed or were not read
	size     int     // in KB before compression, of an item whose events the tail index lacks
	partOf   between // the whole commit; zero if this item is all of it
	before   uint64
	deleted  time.Time
	tailed   bool // whether it is in the tail index
	bytes    int  // the size of the attributes that were read
}

// between is a range of events, including both.
type between struct{ first, last uint64 }

// last returns the number of the aggregate's last event up to this item.
func (it *item) last() uint64 {
	return it.first + it.count - 1
}

func (it *item) place() [2]string { return [2]string{it.partition, it.number} }

func (it *item) isTombstone() bool { return !it.deleted.IsZero() }

func (it *item) isPlaceholder() bool { return it.count == 0 && !it.isTombstone() }

// lacksEvents reports that the events were removed, are not in the index, or were not requested.
func (it *item) lacksEvents() bool { return it.count > 0 && it.events == nil }

// isTorn reports whether more items of the same commit follow.
func (it *item) isTorn() bool { return it.partOf.last > it.last() }

func (it *item) deletedError() error {
	return &journaltype.DeletedError{ID: it.id, Version: it.last(), At: it.deleted}
}

func (it *item) corrupt(reason string) *journaltype.CorruptItemError {
	err := &journaltype.CorruptItemError{Table: it.table, PartitionKey: it.partition, SortKey: it.number, Reason: reason}
	if it.first > 0 {
		err.Aggregate, err.Number = it.id, it.first
	}
	return err
}

// mostEvents is higher than the number of events of any aggregate. Twice the value fits a uint64.
const mostEvents = 1 << 62

// readItem is an item that was read, or the error if it cannot be decoded. Its place is known
// anyway.
type readItem struct {
	item *item
	err  error
}

// parse decodes an item. It treats attributes that a projection left out as absent.
func (p *layout) parse(it table.Item) (*item, error) {
	read := p.parseRow(rows.Of(it))
	if read.err != nil {
		return nil, read.err
	}
	return read.item, nil
}

func (p *layout) parseRow(row rows.Row) readItem {
	it := &item{table: p.Config.Tables.Journal}
	return readItem{it, it.parse(row, p.Config.Attributes)}
}

func (it *item) parse(row rows.Row, names journaltype.Attributes) error {
	var commit rows.Attribute
	var small, large, noted []byte
	counted := false
	for i := range row {
		it.bytes += len(row[i].Name) + len(row[i].Text) + len(row[i].Binary)
		switch a := &row[i]; a.Name {
		case names.PartitionKey:
			it.partition = textOf(a)
		case names.SortKey:
			it.number = digitsOf(a)
		case attrCommit:
			commit = *a
		case attrID:
			if it.command = textOf(a); a.Kind == rows.Binary {
				it.command = string(a.Binary)
			}
		case attrHold:
			it.hold = wholeOf(a)
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
	if it.events = large; large == nil && small != nil {
		it.events, it.size = small, 0
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
		return it.corrupt("has no events but is not a tombstone, or is a tombstone with events")
	}
	return nil
}

// textOf, digitsOf and bytesIn return a text, a number as it is stored, and a binary value. The
// result is empty if the attribute has another type.
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

// wholeOf returns a whole number, and 0 if the attribute is not one.
func wholeOf(a *rows.Attribute) uint64 {
	n, err := strconv.ParseUint(digitsOf(a), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// A commit id that is a UUID is stored as 16 bytes. Text begins with a mark: markText for ids that
// are not UUIDs, markForeign for imported commits that had no id.
const (
	markText    = "="
	markForeign = "-"
)

func commitValue(commitID string) types.AttributeValue {
	switch id := packID(commitID).(type) {
	case []byte:
		return table.BinaryValue(id)
	default:
		if commitID == "" {
			return table.StringValue(markForeign + uuid.NewString())
		}
		return table.StringValue(markText + commitID)
	}
}

// commitOf returns the commit id as a unique key, and as the caller passed it, empty if it had
// none.
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
