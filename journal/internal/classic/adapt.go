package classic

import (
	"bytes"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// adaptToHead changes a transaction that was refused because of its head although the version is
// the expected one. It reports whether the transaction can be sent again. There are two such cases.
// Neither costs anything while it does not occur.
//
// In the first case, the head has a snapshot that is ahead of it: the head or its version was put
// back, or a journal was restored and the version corrected. The snapshot belongs to a history that
// does not exist any more. Loads would use it as soon as the new history has as many events. So the
// commit removes it, and also the listed redundant snapshots that are ahead.
//
// In the second case, events were truncated, and a snapshot of a later schema stands for them. This
// program is older, and would replace that snapshot by one that newer programs refuse. So the
// commit leaves its own snapshot out.
func (l *layout) adaptToHead(t *commit, stored table.Item) bool {
	c := t.Commit
	if t.adapted || len(c.Events) == 0 || c.Expected == 0 || stored == nil {
		return false
	}
	head, err := l.headOf(c.Aggregate, stored)
	if err != nil || head.Version != c.Expected || !head.DeletedAt.IsZero() {
		return false
	}
	number, _ := table.UintOf(stored[attrSnapshotNumber])
	schema, _ := table.UintOf(stored[attrSnapshotSchema])
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
	// DynamoDB may remember the earlier request under the old token.
	token := l.Config.NewID()
	t.input.ClientRequestToken = &token
	return true
}

// replaceHead returns the update of a head whose snapshot is ahead of it. It keeps a payload that
// another program has put in place of the snapshot.
func (l *layout) replaceHead(t *commit, stored table.Item, head journaltype.Head) types.TransactWriteItem {
	c := t.Commit
	condition, names, values := l.versionCondition(c)
	var remove []string
	if c.Snapshot == nil {
		names["#n"], names["#g"], names["#s"] = attrSnapshotNumber, attrSnapshotDigest, attrSnapshotSchema
		remove = append(remove, "#n", "#g", "#s")
		payload, _ := table.BytesOf(stored[l.Config.Attributes.Payload])
		mark, _ := table.BytesOf(stored[attrSnapshotDigest])
		if payload != nil && bytes.Equal(mark, digest(payload)) {
			names["#p"], names["#e"] = l.Config.Attributes.Payload, engine.AttrEncoding
			remove = append(remove, "#p", "#e")
		}
	}
	listed := head.Redundant
	switch _, added := t.head[attrRedundant]; {
	case added && c.Redundancy.Listed != nil:
		// The list was read without the numbers that are ahead.
		return l.updateOfHead(c, t.head, condition, names, values, remove...)
	case added:
		listed = append(listed, c.Snapshot.Number)
	case len(listed) == 0:
		names["#r"] = attrRedundant
		remove = append(remove, "#r")
		return l.updateOfHead(c, t.head, condition, names, values, remove...)
	}
	t.head[attrRedundant], c.Redundancy = table.ListValue(listed), &storage.Redundancy{Listed: listed}
	return l.updateOfHead(c, t.head, condition, names, values, remove...)
}

// dropSnapshot removes all actions and attributes for the snapshot from the transaction.
func (l *layout) dropSnapshot(t *commit) {
	t.input.TransactItems = append(t.input.TransactItems[:t.states:t.states], t.Commit.Writes...)
	t.writes = t.states
	t.LeaveOut(storage.ErrOldSchema)
	t.Receipt.Surplus = nil
	if r := t.Commit.Redundancy; r != nil {
		t.Receipt.Redundant = r.Listed
	}
	t.head = l.headItem(t.Commit)
}
