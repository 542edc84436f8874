package classic

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Attributes that Millrace adds to the items that hold a snapshot. The last one is on the head and
// lists the redundant snapshots.
const (
	attrSnapshotNumber = "snapshot_seq_nr"
	attrSnapshotDigest = "snapshot_digest"
	attrSnapshotSchema = "snapshot_schema"
	attrRedundant      = "snapshot_redundant"
)

// deletesAtOnce is the largest number of surplus snapshots that one commit deletes.
const deletesAtOnce = 25

// addSnapshot adds the snapshot to the transaction as far as there is room, the latest one first.
func (l *layout) addSnapshot(t *commit, head table.Item) {
	c := t.Commit
	if c.Redundancy != nil {
		// addRedundant changes it if it adds another one.
		t.Receipt.Redundant = slices.Clone(c.Redundancy.Listed)
	}
	if c.Snapshot == nil {
		return
	}
	if len(c.Events) == 0 {
		// The transaction only checks the head.
		t.LeaveOut(storage.ErrNoRoom)
		return
	}
	switch err := l.addLatest(t, head); {
	case errors.Is(err, errDeclined):
		t.Snapshot = nil // the commit leaves the stored one as it is
		return
	case err != nil:
		t.LeaveOut(err)
		return
	}
	t.Receipt.Head = storage.HeadSize{Item: table.ItemSize(head), State: len(c.Snapshot.Payload)}
	if r := c.Redundancy; r != nil {
		l.addRedundant(t, head, r)
	}
}

var errDeclined = errors.New("the snapshot does not pay")

// addLatest puts the snapshot into the head, where loads expect it.
func (l *layout) addLatest(t *commit, head table.Item) error {
	if w := t.Worth; w != nil && !l.Pays(w, len(t.Commit.Snapshot.Payload)) {
		t.Receipt.SnapshotDeclined = true
		return errDeclined
	}
	with := table.Item{}
	l.setSnapshot(with, t.Commit.Snapshot)
	bytes := table.ItemSize(with)
	spare := foreignHeadBytes
	if r := t.Commit.Redundancy; r != nil {
		spare += table.ListBytes * (len(r.Listed) + 1)
	}
	if err := t.room(table.ItemSize(head)+bytes+spare, bytes+spare); err != nil {
		return err
	}
	maps.Copy(head, with)
	t.size += bytes
	return nil
}

// headPrice is what a KB of the head costs with a commit and a load, in read units: three write
// units, at five times the price of a read unit, and a quarter of a read unit.
const headPrice = 3*5 + 0.25

// Pays compares the growth of the head, for which every later commit and load pays, with the replay
// that every later load saves. A snapshot for which the head does not grow costs nothing.
func (l *layout) Pays(w *storage.Worth, bytes int) bool {
	if w.Head.Item == 0 {
		return false // the size is not known
	}
	kb := func(size int) int { return (size + 1023) / 1024 }
	growth := kb(w.Head.Item-w.Head.State+bytes) - kb(w.Head.Item)
	return growth <= 0 || w.Units >= headPrice*float64(growth)
}

// room returns an error if there is no room for the item of a snapshot of itemBytes, or for that
// many more bytes in the transaction.
func (t *commit) room(itemBytes, bytes int) error {
	switch {
	case itemBytes > storage.MaxItemBytes:
		return &journaltype.TooLargeError{ID: t.Commit.Aggregate, What: "the snapshot", Size: itemBytes, Limit: storage.MaxItemBytes, Unit: storage.UnitBytes}
	case !t.hasRoom(0, bytes):
		return storage.ErrNoRoom
	}
	return nil
}

// addRedundant adds a row for the redundant snapshot, and updates the list in the head.
func (l *layout) addRedundant(t *commit, head table.Item, r *storage.Redundancy) {
	c := t.Commit
	row := l.key(c.Aggregate, c.Snapshot.Number)
	row[l.Config.Attributes.AggregateID] = table.StringValue(c.Aggregate.String())
	row[l.Config.Attributes.SequenceNumber] = table.NumberValue(c.Snapshot.Number)
	row[l.Config.Attributes.Version] = table.NumberValue(c.Version())
	row[l.Config.Attributes.TTL] = table.NumberValue(0)
	if r.TTL > 0 {
		row[l.Config.Attributes.TTL] = table.NumberValue(t.Receipt.OccurredAt.Add(r.TTL).Unix())
	}
	l.setSnapshot(row, c.Snapshot)
	bytes := table.ItemSize(row) + table.ListBytes*(len(r.Listed)+1)
	if !t.hasRoom(1, bytes) {
		return
	}
	t.add(types.TransactWriteItem{Put: &types.Put{TableName: &l.Config.Tables.Snapshot, Item: row}}, bytes)

	if r.Listed == nil {
		head[attrRedundant] = table.ListValue([]uint64{c.Snapshot.Number}) // writeHead appends it
		return
	}
	listed := append(slices.Clone(r.Listed), c.Snapshot.Number)
	if r.TTL > 0 {
		// Rows that are no longer listed expire.
		listed = listed[max(0, len(listed)-r.Keep):]
		t.Receipt.Redundant = listed
		head[attrRedundant] = table.ListValue(listed)
		return
	}
	// Surplus snapshots should have been removed after the last commit, but that may have failed.
	// One transaction removes both the row and its entry in the list.
	for left := min(len(r.Listed)-r.Keep, deletesAtOnce); left > 0 && t.hasRoom(1, 0); left-- {
		t.add(types.TransactWriteItem{Delete: &types.Delete{
			TableName: &l.Config.Tables.Snapshot, Key: l.key(c.Aggregate, listed[0]),
		}}, 0)
		listed = listed[1:]
	}
	t.Receipt.Redundant = listed
	t.Receipt.Surplus = listed[:max(0, len(listed)-r.Keep)]
	head[attrRedundant] = table.ListValue(listed)
}

// setSnapshot sets the attributes of a snapshot on the head or on a row of its own.
func (l *layout) setSnapshot(it table.Item, s *journaltype.Snapshot) {
	it[l.Config.Attributes.Payload] = table.BinaryValue(s.Payload)
	engine.SetEncoding(it, s.Encoding)
	it[attrSnapshotNumber] = table.NumberValue(s.Number)
	it[attrSnapshotDigest] = table.BinaryValue(digest(s.Payload))
	it[attrSnapshotSchema] = table.NumberValue(s.Schema)
}

// snapshotOf decodes the snapshot that SetSnapshot stored, or that another program put in its
// place. It returns nil if there is no snapshot.
func (l *layout) snapshotOf(it table.Item) *journaltype.Snapshot {
	payload, ok := table.BytesOf(it[l.Config.Attributes.Payload])
	if !ok {
		return nil
	}
	s := &journaltype.Snapshot{Payload: payload}
	number, numberOK := table.UintOf(it[attrSnapshotNumber])
	stored, digestOK := table.BytesOf(it[attrSnapshotDigest])
	if numberOK && digestOK && bytes.Equal(stored, digest(payload)) {
		s.Number = number
		s.Schema, _ = table.UintOf(it[attrSnapshotSchema])
		s.Encoding, _ = engine.EncodingOf(it)
	}
	return s
}

// digest distinguishes a snapshot of this package from one that another program put in its place:
// the update of the other program sets the payload and leaves our attributes unchanged.
func digest(payload []byte) []byte {
	sum := sha256.Sum256(payload)
	return sum[:16]
}

func (l *layout) SnapshotBefore(ctx context.Context, head journaltype.Head, number uint64) (*journaltype.Snapshot, error) {
	if number == 0 {
		// DynamoDB refuses an empty range.
		return nil, nil
	}
	for _, listed := range slices.Backward(head.Redundant) {
		if listed > number {
			continue
		}
		it, err := l.GetItem(ctx, l.Config.Tables.Snapshot, l.key(head.Aggregate, listed))
		if err != nil {
			return nil, err
		}
		if s := l.snapshotOf(it); s != nil {
			return s, nil
		}
	}
	if len(head.Redundant) > 0 {
		return nil, nil
	}
	a := l.Config.Attributes
	pages := dynamodb.NewQueryPaginator(l.Client, &dynamodb.QueryInput{
		TableName:                &l.Config.Tables.Snapshot,
		IndexName:                &l.Config.Indexes.SnapshotAggregate,
		KeyConditionExpression:   aws.String("#aid = :aid AND #n BETWEEN :one AND :n"),
		ExpressionAttributeNames: table.AttributeNames("#aid", a.AggregateID, "#n", a.SequenceNumber),
		ExpressionAttributeValues: table.Item{
			":aid": table.StringValue(head.Aggregate.String()), ":one": table.NumberValue(1), ":n": table.NumberValue(number),
		},
		ScanIndexForward: aws.Bool(false),
		Limit:            aws.Int32(1),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, dynamo.Explain(err, l.Config.Tables.Snapshot)
		}
		for _, it := range page.Items {
			if p, _ := l.KeysOf(it); p != l.partitionKey(head.Aggregate) {
				continue // another type's aggregate with the same aid
			}
			// A snapshot of this package that the head does not list belongs to an abandoned
			// history.
			if s := l.snapshotOf(it); s != nil && s.Number == 0 {
				return s, nil
			}
		}
	}
	return nil, nil
}

func (l *layout) RemoveSnapshots(ctx context.Context, id aggregate.ID, numbers []uint64) error {
	return l.DeleteAll(ctx, l.Config.Tables.Snapshot, l.keys(id, numbers))
}
