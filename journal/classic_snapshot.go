package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
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
func (l *classic) addSnapshot(t *transaction, head item) {
	c := t.Commit
	if c.Redundancy != nil {
		// addRedundant changes it if it adds another one.
		t.receipt.Redundant = slices.Clone(c.Redundancy.Listed)
	}
	if c.Snapshot == nil {
		return
	}
	if len(c.Events) == 0 {
		// The transaction only checks the head.
		t.leaveOut(storage.ErrNoRoom)
		return
	}
	if err := l.addLatest(t, head); err != nil {
		t.leaveOut(err)
		return
	}
	if r := c.Redundancy; r != nil {
		l.addRedundant(t, head, r)
	}
}

// addLatest puts the snapshot into the head, where loads expect it.
func (l *classic) addLatest(t *transaction, head item) error {
	with := item{}
	l.setSnapshot(with, t.Commit.Snapshot)
	bytes := itemSize(with)
	spare := foreignHeadBytes
	if r := t.Commit.Redundancy; r != nil {
		spare += listBytes * (len(r.Listed) + 1)
	}
	if err := t.room(itemSize(head)+bytes+spare, bytes+spare); err != nil {
		return err
	}
	maps.Copy(head, with)
	t.size += bytes
	return nil
}

// room returns an error if there is no room for the item of a snapshot of itemBytes, or for that
// many more bytes in the transaction.
func (t *transaction) room(itemBytes, bytes int) error {
	switch {
	case itemBytes > storage.MaxItemBytes:
		return &TooLargeError{ID: t.Commit.Aggregate, What: "the snapshot", Size: itemBytes, Limit: storage.MaxItemBytes, Unit: storage.UnitBytes}
	case !t.hasRoom(0, bytes):
		return storage.ErrNoRoom
	}
	return nil
}

// addRedundant adds a row for the redundant snapshot, and updates the list in the head.
func (l *classic) addRedundant(t *transaction, head item, r *storage.Redundancy) {
	c := t.Commit
	row := l.key(c.Aggregate, c.Snapshot.Number)
	row[l.config.Attributes.AggregateID] = stringValue(c.Aggregate.String())
	row[l.config.Attributes.SequenceNumber] = numberValue(c.Snapshot.Number)
	row[l.config.Attributes.Version] = numberValue(c.Version())
	row[l.config.Attributes.TTL] = numberValue(0)
	if r.TTL > 0 {
		row[l.config.Attributes.TTL] = numberValue(t.receipt.OccurredAt.Add(r.TTL).Unix())
	}
	l.setSnapshot(row, c.Snapshot)
	bytes := itemSize(row) + listBytes*(len(r.Listed)+1)
	if !t.hasRoom(1, bytes) {
		return
	}
	t.add(types.TransactWriteItem{Put: &types.Put{TableName: &l.config.Tables.Snapshot, Item: row}}, bytes)

	if r.Listed == nil {
		head[attrRedundant] = listValue([]uint64{c.Snapshot.Number}) // writeHead appends it
		return
	}
	listed := append(slices.Clone(r.Listed), c.Snapshot.Number)
	if r.TTL > 0 {
		// Rows that are no longer listed expire.
		listed = listed[max(0, len(listed)-r.Keep):]
		t.receipt.Redundant = listed
		head[attrRedundant] = listValue(listed)
		return
	}
	// Surplus snapshots should have been removed after the last commit, but that may have failed.
	// One transaction removes both the row and its entry in the list.
	for left := min(len(r.Listed)-r.Keep, deletesAtOnce); left > 0 && t.hasRoom(1, 0); left-- {
		t.add(types.TransactWriteItem{Delete: &types.Delete{
			TableName: &l.config.Tables.Snapshot, Key: l.key(c.Aggregate, listed[0]),
		}}, 0)
		listed = listed[1:]
	}
	t.receipt.Redundant = listed
	t.receipt.Surplus = listed[:max(0, len(listed)-r.Keep)]
	head[attrRedundant] = listValue(listed)
}

// setSnapshot sets the attributes of a snapshot on the head or on a row of its own.
func (l *classic) setSnapshot(it item, s *Snapshot) {
	it[l.config.Attributes.Payload] = binaryValue(s.Payload)
	setEncoding(it, s.Encoding)
	it[attrSnapshotNumber] = numberValue(s.Number)
	it[attrSnapshotDigest] = binaryValue(digest(s.Payload))
	it[attrSnapshotSchema] = numberValue(s.Schema)
}

// snapshotOf decodes the snapshot that setSnapshot stored, or that another program put in its
// place. It returns nil if there is no snapshot.
func (l *classic) snapshotOf(it item) *Snapshot {
	payload, ok := bytesOf(it[l.config.Attributes.Payload])
	if !ok {
		return nil
	}
	s := &Snapshot{Payload: payload}
	number, numberOK := uintOf(it[attrSnapshotNumber])
	stored, digestOK := bytesOf(it[attrSnapshotDigest])
	if numberOK && digestOK && bytes.Equal(stored, digest(payload)) {
		s.Number = number
		s.Schema, _ = uintOf(it[attrSnapshotSchema])
		s.Encoding, _ = encodingOf(it)
	}
	return s
}

// digest distinguishes a snapshot of this package from one that another program put in its place:
// the update of the other program sets the payload and leaves our attributes unchanged.
func digest(payload []byte) []byte {
	sum := sha256.Sum256(payload)
	return sum[:16]
}

func (l *classic) snapshotBefore(ctx context.Context, head Head, number uint64) (*Snapshot, error) {
	if number == 0 {
		// DynamoDB refuses an empty range.
		return nil, nil
	}
	for _, listed := range slices.Backward(head.Redundant) {
		if listed > number {
			continue
		}
		it, err := l.getItem(ctx, l.config.Tables.Snapshot, l.key(head.Aggregate, listed))
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
	a := l.config.Attributes
	pages := dynamodb.NewQueryPaginator(l.client, &dynamodb.QueryInput{
		TableName:                &l.config.Tables.Snapshot,
		IndexName:                &l.config.Indexes.SnapshotAggregate,
		KeyConditionExpression:   aws.String("#aid = :aid AND #n BETWEEN :one AND :n"),
		ExpressionAttributeNames: attributeNames("#aid", a.AggregateID, "#n", a.SequenceNumber),
		ExpressionAttributeValues: item{
			":aid": stringValue(head.Aggregate.String()), ":one": numberValue(1), ":n": numberValue(number),
		},
		ScanIndexForward: aws.Bool(false),
		Limit:            aws.Int32(1),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, dynamo.Explain(err, l.config.Tables.Snapshot)
		}
		for _, it := range page.Items {
			if p, _ := l.keysOf(it); p != l.partitionKey(head.Aggregate) {
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

func (l *classic) removeSnapshots(ctx context.Context, id aggregate.ID, numbers []uint64) error {
	return l.deleteAll(ctx, l.config.Tables.Snapshot, l.keys(id, numbers))
}

// listBytes is the largest size of a number in a list.
const listBytes = 22

func listValue(numbers []uint64) types.AttributeValue {
	values := make([]types.AttributeValue, len(numbers))
	for i, n := range numbers {
		values[i] = numberValue(n)
	}
	return &types.AttributeValueMemberL{Value: values}
}

// numbersOf returns the numbers of a list in ascending order.
func numbersOf(v types.AttributeValue) (numbers []uint64) {
	list, _ := v.(*types.AttributeValueMemberL)
	if list == nil {
		return nil
	}
	for _, value := range list.Value {
		if n, ok := uintOf(value); ok && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}
