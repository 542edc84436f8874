package classic

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// foreignHeadBytes is the space left free beside a snapshot for attributes that other programs put
// on the head.
const foreignHeadBytes = 1 << 10

// commit is a commit in the form in which it is sent. Its id never changes. Its date and its
// ClientRequestToken may change while it is certain that no attempt was written; see Redate.
type commit struct {
	engine.Draft
	layout *layout
	input  *dynamodb.TransactWriteItemsInput
	dated  bool // by this process; false if the events bring their dates
	size   int  // in bytes, as DynamoDB counts them
	guard  int  // index of the action that puts the command's guard; 0 if there is none
	states int  // index of the first action for a snapshot
	writes int  // index of the first of the caller's own actions

	head    table.Item // as headItem and addSnapshot made it
	adapted bool       // see adaptToHead
}

func (l *layout) Part(_ context.Context, d engine.Draft) (engine.Part, error) {
	return &commit{Draft: d, layout: l, dated: true}, nil
}

func (t *commit) Build(at table.Dates) error {
	t.Date(at)
	l, c := t.layout, t.Commit
	t.input = &dynamodb.TransactWriteItemsInput{
		TransactItems:      make([]types.TransactWriteItem, 1, 2+len(c.Events)+len(c.Writes)),
		ClientRequestToken: &t.Receipt.CommitID,
	}
	for i, e := range t.Encoded {
		it := l.itemOf(&journaltype.Record{
			Aggregate: c.Aggregate, Number: c.Expected + uint64(i) + 1,
			EventID: e.ID, EventType: e.Type, Payload: e.Payload, Metadata: e.Metadata, Encoding: e.Encoding,
			OccurredAt: t.Receipt.OccurredAt, CommitID: t.Receipt.CommitID,
		})
		bytes := table.ItemSize(it)
		if bytes > storage.MaxItemBytes {
			return &journaltype.TooLargeError{ID: c.Aggregate, What: fmt.Sprintf("event %d of the commit, %q,", i+1, e.Type), Size: bytes, Limit: storage.MaxItemBytes, Unit: storage.UnitBytes}
		}
		t.add(l.PutNew(l.Config.Tables.Journal, it), bytes)
	}
	if c.CommandID != "" {
		it := l.guardItem(t)
		t.guard = len(t.input.TransactItems)
		t.add(l.PutNew(l.Config.Tables.Journal, it), table.ItemSize(it))
	}
	for _, w := range c.Writes {
		t.size += table.WriteSize(w)
	}
	head := l.headItem(c)
	t.size += table.ItemSize(head)
	if t.size > storage.MaxCommitBytes {
		return &journaltype.TooLargeError{ID: c.Aggregate, What: "the commit", Size: t.size, Limit: storage.MaxCommitBytes, Unit: storage.UnitBytes}
	}
	t.head, t.states = head, len(t.input.TransactItems)
	l.addSnapshot(t, head)
	t.input.TransactItems[0] = l.writeHead(c, head)
	t.writes = len(t.input.TransactItems)
	t.input.TransactItems = append(t.input.TransactItems, c.Writes...)
	return nil
}

func (t *commit) Actions() []types.TransactWriteItem { return t.input.TransactItems }

func (t *commit) Bytes() int { return t.size }

func (t *commit) Finish(context.Context) storage.Receipt { return t.Receipt }

func (t *commit) add(action types.TransactWriteItem, bytes int) {
	t.input.TransactItems = append(t.input.TransactItems, action)
	t.size += bytes
}

// hasRoom reports whether the transaction has room for an optional part.
func (t *commit) hasRoom(actions, bytes int) bool {
	if t.Beside != nil {
		actions, bytes = actions+t.Beside.Actions, bytes+t.Beside.Bytes
	}
	return len(t.input.TransactItems)+len(t.Commit.Writes)+actions <= storage.MaxActions && t.size+bytes <= storage.MaxCommitBytes
}

func (l *layout) IsOwn(c *storage.Commit, name string, key table.Item) bool {
	partition, sort := l.KeysOf(key)
	number, ok := strings.CutPrefix(sort, c.Aggregate.String()+"-")
	if !ok || partition != l.partitionKey(c.Aggregate) {
		return false
	}
	if name == l.Config.Tables.Snapshot {
		redundant := c.Redundancy != nil && c.Snapshot != nil && sort == storage.SortKey(c.Aggregate, c.Snapshot.Number)
		return sort == storage.SortKey(c.Aggregate, 0) || redundant
	}
	_, guard := l.KeysOf(l.guardKey(c.Aggregate, c.CommandID))
	n, err := strconv.ParseUint(number, 10, 64)
	return c.CommandID != "" && sort == guard || err == nil && n > c.Expected && n <= c.Version()
}
