package journal

import (
	"bytes"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/storage"
)

// adaptToHead changes a transaction that was refused for its head although the version is the expected
// one, and reports whether it is to be sent again. Two things come to that, and neither costs
// anything where they do not happen:
//
// The head has a snapshot that is ahead of it, because a head or its version was put back, or a
// journal restored and the version corrected. It is of a history that is no more, and once the new
// one has as many events it would be believed. So the commit removes it, and what is ahead among
// the listed redundant ones.
//
// Events were truncated under a snapshot of a later schema, which alone stands for them. This
// program, which is older, would replace it by one that the newer ones refuse. So the commit leaves
// its own out.
func (l *classic) adaptToHead(t *transaction, stored item) bool {
	c := t.commit
	if t.adapted || len(c.Events) == 0 || c.Expected == 0 || stored == nil {
		return false
	}
	head, err := l.headOf(c.Aggregate, stored)
	if err != nil || head.Version != c.Expected || !head.DeletedAt.IsZero() {
		return false
	}
	number, _ := uintOf(stored[attrSnapshotNumber])
	schema, _ := uintOf(stored[attrSnapshotSchema])
	ahead := number > c.Expected
	t.adapted = true
	switch {
	case ahead:
		t.input.TransactItems[0] = l.replaceHead(t, stored, head)
	case c.Snapshot != nil && head.TruncatedBefore > 0 && schema > c.Snapshot.Schema:
		l.dropSnapshot(t)
		t.input.TransactItems[0] = l.writeHead(c, t.head)
	default:
		return false
	}
	// DynamoDB may remember the token with what was sent under it.
	token := l.config.NewID()
	t.input.ClientRequestToken = &token
	return true
}

// replaceHead moves a head whose snapshot is ahead of it. A payload that a foreign writer has put
// in the snapshot's place stays.
func (l *classic) replaceHead(t *transaction, stored item, head Head) types.TransactWriteItem {
	c := t.commit
	condition, names, values := l.versionCondition(c)
	var remove []string
	if c.Snapshot == nil {
		names["#n"], names["#g"], names["#s"] = attrSnapshotNumber, attrSnapshotDigest, attrSnapshotSchema
		remove = append(remove, "#n", "#g", "#s")
		payload, _ := bytesOf(stored[l.config.Attributes.Payload])
		mark, _ := bytesOf(stored[attrSnapshotDigest])
		if payload != nil && bytes.Equal(mark, digest(payload)) {
			names["#p"], names["#e"] = l.config.Attributes.Payload, attrEncoding
			remove = append(remove, "#p", "#e")
		}
	}
	listed := head.Redundant
	switch _, added := t.head[attrRedundant]; {
	case added && c.Redundancy.Listed != nil:
		return l.updateOfHead(c, t.head, condition, names, values, remove...) // the list was read without what is ahead
	case added:
		listed = append(listed, c.Snapshot.Number)
	case len(listed) == 0:
		names["#r"] = attrRedundant
		remove = append(remove, "#r")
		return l.updateOfHead(c, t.head, condition, names, values, remove...)
	}
	t.head[attrRedundant], c.Redundancy = listValue(listed), &storage.Redundancy{Listed: listed}
	return l.updateOfHead(c, t.head, condition, names, values, remove...)
}

// dropSnapshot takes all that is there for the snapshot out of the transaction.
func (l *classic) dropSnapshot(t *transaction) {
	t.input.TransactItems = append(t.input.TransactItems[:t.states:t.states], t.commit.Writes...)
	t.writes = t.states
	t.leaveOut(storage.ErrOldSchema)
	t.receipt.Surplus = nil
	if r := t.commit.Redundancy; r != nil {
		t.receipt.Redundant = r.Listed
	}
	t.head = l.headItem(t.commit)
}
