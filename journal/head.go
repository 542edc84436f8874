package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

// Attributes of ours on the head.
const (
	attrSnapshotNumber = "snapshot_seq_nr"
	attrSnapshotDigest = "snapshot_digest"
)

// Head is the one row of an aggregate that every commit moves.
type Head struct {
	Aggregate aggregate.ID
	// Version equals the sequence number of the last event.
	Version uint64
	// Snapshot is nil when the head carries no state.
	Snapshot *Snapshot
}

// Snapshot is the encoded state of an aggregate after some event.
type Snapshot struct {
	// Number is the sequence number of the last event in the state. It is 0 when
	// a foreign writer replaced the payload: the number then stands only inside
	// the payload, if anywhere.
	Number  uint64
	Payload []byte
	// Encoding names what was applied to the payload; see [Journal.Raw]. It is empty on a snapshot that has
	// been decoded.
	Encoding string
}

// Head reads the head of an aggregate, strongly consistent: one round trip, and
// one read unit for each 4 KB of state.
//
// Who wants the version alone takes Raw().Head, which decodes nothing and so needs no key.
//
// Errors: [ErrNotFound], [ErrCorruptItem], [ErrEncoding], [ErrKeyDestroyed], [ErrTableMissing], [ErrThrottled].
func (j *Journal) Head(ctx context.Context, id aggregate.ID) (Head, error) {
	if err := id.Validate(); err != nil {
		return Head{}, err
	}
	it, err := j.getItem(ctx, j.config.Tables.Snapshot, j.key(id, 0))
	if err != nil {
		return Head{}, fmt.Errorf("read head of %s: %w", id, err)
	}
	if it == nil {
		return Head{}, &NotFoundError{ID: id}
	}
	head, err := j.headOf(id, it)
	if err != nil {
		return Head{}, err
	}
	if head.Snapshot, err = j.decodeSnapshot(ctx, id, head.Snapshot); err != nil {
		return Head{}, fmt.Errorf("read head of %s: %w", id, err)
	}
	return head, nil
}

// headOf leaves the snapshot's payload as it is stored.
func (j *Journal) headOf(id aggregate.ID, it item) (Head, error) {
	version, ok := uintOf(it[j.config.Attributes.Version])
	if !ok || version == 0 {
		partition, sort := j.keysOf(it)
		return Head{}, &CorruptItemError{
			Table: j.config.Tables.Snapshot, PartitionKey: partition, SortKey: sort,
			Reason: "has no version from 1 on in " + j.config.Attributes.Version,
		}
	}
	head := Head{Aggregate: id, Version: version}
	payload, ok := bytesOf(it[j.config.Attributes.Payload])
	if !ok {
		return head, nil
	}
	head.Snapshot = &Snapshot{Payload: payload}
	number, numberOK := uintOf(it[attrSnapshotNumber])
	stored, digestOK := bytesOf(it[attrSnapshotDigest])
	if !numberOK || !digestOK || !bytes.Equal(stored, digest(payload)) {
		return head, nil // a foreign writer's, and in plain, whatever our attributes say
	}
	encoding, _ := encodingOf(it)
	switch {
	case number <= version:
		head.Snapshot.Number, head.Snapshot.Encoding = number, encoding
	case encoding != "":
		head.Snapshot = nil // of a head that was set back; its number is needed to decode it, and must not be used
	}
	return head, nil
}

// digest tells our own snapshot from one that a foreign writer put in its place:
// its update sets the payload and leaves our attributes as they were.
func digest(payload []byte) []byte {
	sum := sha256.Sum256(payload)
	return sum[:16]
}

// headItem is the head as a commit leaves it, but for what foreign writers may have added.
func (j *Journal) headItem(c *Commit) item {
	a := j.config.Attributes
	it := j.key(c.Aggregate, 0)
	it[a.AggregateID] = stringValue(c.Aggregate.String())
	it[a.SequenceNumber] = numberValue(0)
	it[a.Version] = numberValue(c.version())
	it[a.TTL] = numberValue(0)
	if c.Snapshot != nil {
		it[a.Payload] = binaryValue(c.Snapshot.Payload)
		it[attrSnapshotNumber] = numberValue(c.Snapshot.Number)
		it[attrSnapshotDigest] = binaryValue(digest(c.Snapshot.Payload))
		setEncoding(it, c.Snapshot.Encoding)
	}
	return it
}

// writeHead is the head's part of a commit: it moves the version under the
// condition that it is the expected one, and stores the snapshot if there is one.
func (j *Journal) writeHead(c *Commit, head item) types.TransactWriteItem {
	a := j.config.Attributes
	if c.Expected == 0 {
		return j.putNew(j.config.Tables.Snapshot, head)
	}
	update := "SET #v = :next"
	names := attributeNames("#v", a.Version)
	values := item{":next": head[a.Version], ":expected": numberValue(c.Expected)}
	if c.Snapshot != nil {
		update += ", #p = :p, #n = :n, #d = :d"
		names["#p"], names["#n"], names["#d"] = a.Payload, attrSnapshotNumber, attrSnapshotDigest
		values[":p"], values[":n"], values[":d"] = head[a.Payload], head[attrSnapshotNumber], head[attrSnapshotDigest]
		names["#e"] = attrEncoding
		if encoding, ok := head[attrEncoding]; ok {
			update += ", #e = :e"
			values[":e"] = encoding
		} else {
			update += " REMOVE #e" // that of the snapshot before
		}
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                           &j.config.Tables.Snapshot,
		Key:                                 j.key(c.Aggregate, 0),
		UpdateExpression:                    &update,
		ConditionExpression:                 aws.String("#v = :expected"),
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}
