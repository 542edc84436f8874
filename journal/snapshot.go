package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Attributes of ours on what holds a snapshot, and on the head the list of the redundant ones.
const (
	attrSnapshotNumber = "snapshot_seq_nr"
	attrSnapshotDigest = "snapshot_digest"
	attrSnapshotSchema = "snapshot_schema"
	attrRedundant      = "snapshot_redundant"
)

// Snapshot is the encoded state of an aggregate after some event.
type Snapshot struct {
	// Number is the sequence number of the last event in the state. It is 0 when
	// a foreign writer replaced the payload: the number then stands only inside
	// the payload, if anywhere.
	Number  uint64
	Payload []byte
	// Schema says in which form the state is, by a number of the writer's own. It counts only where
	// Number is not 0.
	Schema uint64
	// Encoding names what was applied to the payload; see [Journal.Raw]. It is empty on a snapshot
	// that has been decoded.
	Encoding string
}

// deletesAtOnce bounds the rows that one commit deletes for others.
const deletesAtOnce = 25

// validate refuses what would overwrite the head, or delete what was just stored.
func validateRedundancy(r *storage.Redundancy, c *commit) error {
	switch {
	case r.Keep < 1:
		return &ConfigError{Field: "Redundancy.Keep", Reason: fmt.Sprintf("is %d: keep 1 or more, or give no Redundancy", r.Keep)}
	case r.TTL < 0:
		return &ConfigError{Field: "Redundancy.TTL", Reason: "is negative: leave it 0 to remove snapshots with RemoveSnapshots"}
	case c.Snapshot != nil && len(r.Listed) > 0 && r.Listed[len(r.Listed)-1] >= c.Snapshot.Number:
		return &ConfigError{Field: "Redundancy.Listed", Reason: fmt.Sprintf(
			"ends with %d: it has numbers below that of the snapshot, %d, in ascending order", r.Listed[len(r.Listed)-1], c.Snapshot.Number)}
	}
	return nil
}

// addSnapshot puts into the transaction what it has room for, the more important first.
func (j *engine) addSnapshot(t *transaction, head item) {
	c := t.commit
	if c.Redundancy != nil {
		t.receipt.Redundant = slices.Clone(c.Redundancy.Listed) // unless there is one more
	}
	if c.Snapshot == nil {
		return
	}
	if len(c.Events) == 0 {
		t.leaveOut(storage.ErrNoRoom) // the head is only looked at
		return
	}
	if err := j.addLatest(t, head); err != nil {
		t.leaveOut(err)
		return
	}
	if r := c.Redundancy; r != nil {
		j.addRedundant(t, head, r)
	}
}

// addLatest puts the snapshot where loads look for it: into the head, or into a row of its own.
func (j *engine) addLatest(t *transaction, head item) error {
	if j.config.Layout == Lean {
		row := j.stateKey(t.commit.Aggregate)
		j.setSnapshot(row, t.commit.Snapshot)
		bytes := itemSize(row)
		if err := t.room(1, bytes, bytes); err != nil {
			return err
		}
		t.add(types.TransactWriteItem{Put: &types.Put{TableName: &j.config.Tables.Snapshot, Item: row}}, bytes)
		setSnapshotMark(head, t.commit.Snapshot)
		return nil
	}
	with := item{}
	j.setSnapshot(with, t.commit.Snapshot)
	bytes := itemSize(with)
	spare := foreignHeadBytes
	if r := t.commit.Redundancy; r != nil {
		spare += listBytes * (len(r.Listed) + 1)
	}
	if err := t.room(0, itemSize(head)+bytes+spare, bytes+spare); err != nil {
		return err
	}
	maps.Copy(head, with)
	t.size += bytes
	return nil
}

// room says why there is none for a snapshot's item of that size, and for that many more bytes in
// all.
func (t *transaction) room(actions, itemBytes, bytes int) error {
	switch {
	case itemBytes > storage.MaxItemBytes:
		return &TooLargeError{ID: t.commit.Aggregate, What: "the snapshot", Size: itemBytes, Limit: storage.MaxItemBytes, Unit: unitBytes}
	case !t.hasRoom(actions, bytes):
		return storage.ErrNoRoom
	}
	return nil
}

// addRedundant puts the row under the snapshot's own number, and what the head lists then.
func (j *engine) addRedundant(t *transaction, head item, r *storage.Redundancy) {
	c := t.commit
	row := j.key(c.Aggregate, c.Snapshot.Number)
	row[j.config.Attributes.AggregateID] = stringValue(c.Aggregate.String())
	row[j.config.Attributes.SequenceNumber] = numberValue(c.Snapshot.Number)
	row[j.config.Attributes.Version] = numberValue(c.Version())
	row[j.config.Attributes.TTL] = numberValue(0)
	if r.TTL > 0 {
		row[j.config.Attributes.TTL] = numberValue(t.receipt.OccurredAt.Add(r.TTL).Unix())
	}
	j.setSnapshot(row, c.Snapshot)
	bytes := itemSize(row) + listBytes*(len(r.Listed)+1)
	if itemSize(row) > storage.MaxItemBytes || !t.hasRoom(1, bytes) {
		return
	}
	t.add(types.TransactWriteItem{Put: &types.Put{TableName: &j.config.Tables.Snapshot, Item: row}}, bytes)

	if r.Listed == nil {
		head[attrRedundant] = listValue([]uint64{c.Snapshot.Number}) // writeHead appends it
		return
	}
	listed := append(slices.Clone(r.Listed), c.Snapshot.Number)
	if r.TTL > 0 {
		// Those that are forgotten expire.
		listed = listed[max(0, len(listed)-r.Keep):]
		t.receipt.Redundant = listed
		head[attrRedundant] = listValue(listed)
		return
	}
	// What was surplus before this commit should be gone, but its writer may have failed to remove
	// it. Deleting it and forgetting it are one.
	for left := min(len(r.Listed)-r.Keep, deletesAtOnce); left > 0 && t.hasRoom(1, 0); left-- {
		t.add(types.TransactWriteItem{Delete: &types.Delete{
			TableName: &j.config.Tables.Snapshot, Key: j.key(c.Aggregate, listed[0]),
		}}, 0)
		listed = listed[1:]
	}
	t.receipt.Redundant = listed
	t.receipt.Surplus = listed[:max(0, len(listed)-r.Keep)]
	head[attrRedundant] = listValue(listed)
}

// setSnapshot sets the attributes of a snapshot on the head or on a row of its own.
func (j *engine) setSnapshot(it item, s *Snapshot) {
	it[j.config.Attributes.Payload] = binaryValue(s.Payload)
	setSnapshotMark(it, s)
	setEncoding(it, s.Encoding)
}

// setSnapshotMark sets what the head has of a snapshot in either layout: which one it is.
func setSnapshotMark(it item, s *Snapshot) {
	it[attrSnapshotNumber] = numberValue(s.Number)
	it[attrSnapshotDigest] = binaryValue(digest(s.Payload))
	it[attrSnapshotSchema] = numberValue(s.Schema)
}

// snapshotOf reads what setSnapshot has set, or what a foreign writer has put in its place; nil for
// no state.
func (j *engine) snapshotOf(it item) *Snapshot {
	payload, ok := bytesOf(it[j.config.Attributes.Payload])
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

// digest distinguishes our own snapshot from one that a foreign writer put in its place:
// its update sets the payload and leaves our attributes as they were.
func digest(payload []byte) []byte {
	sum := sha256.Sum256(payload)
	return sum[:16]
}

// stateKey is where the lean layout keeps the latest snapshot. It is never the key of an event or a
// head, which end in a number.
func (j *engine) stateKey(id aggregate.ID) item {
	return item{
		j.config.Attributes.PartitionKey: stringValue(j.partitionKey(id)),
		j.config.Attributes.SortKey:      stringValue(id.Type + "-" + id.Value + "-state"),
	}
}

func (j *engine) SnapshotBefore(ctx context.Context, head Head, number uint64) (*Snapshot, error) {
	s, err := j.snapshotBefore(ctx, head, number)
	if err == nil {
		s, err = j.decodeSnapshot(ctx, head.Aggregate, s)
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot of %s at event %d: %w", head.Aggregate, number, err)
	}
	return s, nil
}

func (j *engine) snapshotBefore(ctx context.Context, head Head, number uint64) (*Snapshot, error) {
	if number == 0 {
		return nil, nil // and DynamoDB refuses an empty range
	}
	for _, listed := range slices.Backward(head.Redundant) {
		if listed > number {
			continue
		}
		it, err := j.getItem(ctx, j.config.Tables.Snapshot, j.key(head.Aggregate, listed))
		if err != nil {
			return nil, err
		}
		if s := j.snapshotOf(it); s != nil {
			return s, nil
		}
	}
	if len(head.Redundant) > 0 || j.config.Layout == Lean {
		return nil, nil
	}
	a := j.config.Attributes
	pages := dynamodb.NewQueryPaginator(j.client, &dynamodb.QueryInput{
		TableName:                &j.config.Tables.Snapshot,
		IndexName:                &j.config.Indexes.SnapshotAggregate,
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
			return nil, dynamo.Explain(err, j.config.Tables.Snapshot)
		}
		for _, it := range page.Items {
			if p, _ := j.keysOf(it); p != j.partitionKey(head.Aggregate) {
				continue // another type's aggregate with the same aid
			}
			// One of ours that the head does not list is of a history that was abandoned.
			if s := j.snapshotOf(it); s != nil && s.Number == 0 {
				return s, nil
			}
		}
	}
	return nil, nil
}

func (j *engine) RemoveSnapshots(ctx context.Context, id aggregate.ID, numbers []uint64) error {
	if err := id.Validate(); err != nil {
		return err
	}
	keys := make([]item, 0, len(numbers))
	for _, n := range slices.Compact(slices.Sorted(slices.Values(numbers))) {
		if n == 0 {
			return fmt.Errorf("remove snapshots of %s: %w", id, errors.New("0 is the head, which stays"))
		}
		keys = append(keys, j.key(id, n))
	}
	if err := j.deleteAll(ctx, j.config.Tables.Snapshot, keys); err != nil {
		return fmt.Errorf("remove snapshots of %s: %w", id, err)
	}
	return nil
}

// listBytes is the most that a number in a list takes.
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
