package classic

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (l *layout) Command(ctx context.Context, id aggregate.ID, commandID string) (storage.Command, bool, error) {
	// A transaction waits while the commit is being written. A plain read could miss the guard
	// although the aggregate already shows the commit.
	items, err := l.TransactGet(ctx, l.Config.Tables.Journal, []table.Item{l.guardKey(id, commandID)})
	if len(items) == 0 || err != nil {
		return storage.Command{}, false, err
	}
	c, err := l.commandOf(items[0])
	return c, err == nil, err
}

// guardKey returns a key in the partition of the aggregate's events. Command ids differ in length,
// so the key holds a digest of fixed length. It is not longer than the number in an event's key.
// Its last character is not a digit, so it is never the key of an event.
func (l *layout) guardKey(id aggregate.ID, commandID string) table.Item {
	sum := sha256.Sum256([]byte(commandID))
	digest := base64.RawURLEncoding.EncodeToString(sum[:])[:19] // 114 bits
	return table.Item{
		l.Config.Attributes.PartitionKey: table.StringValue(l.partitionKey(id)),
		l.Config.Attributes.SortKey:      table.StringValue(id.Type + "-" + id.Value + "-" + digest + "~"),
	}
}

func (l *layout) Unchanged(ctx context.Context, places []storage.Place) error {
	keys, at := make([]table.Item, len(places)), map[[2]string]int{}
	for i, p := range places {
		keys[i] = l.key(p.Aggregate, 0)
		partition, sort := l.KeysOf(keys[i])
		at[[2]string{partition, sort}] = i
	}
	items, err := l.TransactGetUnless(ctx, l.Config.Tables.Snapshot, keys, func(ctx context.Context, key int) error {
		return l.hasMoved(ctx, places[key])
	})
	var canceled *types.TransactionCanceledException
	if dynamo.Code(err) == "ValidationException" || errors.As(err, &canceled) && slices.ContainsFunc(canceled.CancellationReasons, table.IsFinal) {
		return &journaltype.TooLargeError{
			// DynamoDB does not say how large it was.
			ID: places[0].Aggregate, What: "a transaction that reads all heads again", Size: storage.MaxCommitBytes + 1,
			Limit: storage.MaxCommitBytes, Unit: storage.UnitBytes,
		}
	}
	if err != nil {
		return err
	}
	versions := make([]uint64, len(places))
	for _, it := range items {
		partition, sort := l.KeysOf(it)
		i := at[[2]string{partition, sort}]
		head, err := l.headOf(places[i].Aggregate, it)
		if err != nil {
			return err
		}
		if versions[i] = head.Version; !head.DeletedAt.IsZero() {
			return wasDeleted(places[i], engine.DeletedErrorOf(head))
		}
	}
	for i, p := range places {
		if versions[i] != p.Version {
			return &journaltype.ConflictError{ID: p.Aggregate, Expected: p.Version, Actual: versions[i]}
		}
	}
	return nil
}

// hasMoved returns a *journal.ConflictError if the head has another version than place.
func (l *layout) hasMoved(ctx context.Context, place storage.Place) error {
	version, err := l.Version(ctx, place.Aggregate)
	switch {
	case errors.As(err, new(*journaltype.DeletedError)):
		return wasDeleted(place, err)
	case err != nil && !errors.Is(err, journaltype.ErrNotFound):
		return err
	case version != place.Version:
		return &journaltype.ConflictError{ID: place.Aggregate, Expected: place.Version, Actual: version}
	}
	return nil
}

// wasDeleted returns the error of Unchanged for an aggregate that was deleted. A caller that has
// just loaded the version decides again, like after any other change.
func wasDeleted(place storage.Place, err error) error {
	if place.Kept {
		return err
	}
	return &journaltype.ConflictError{ID: place.Aggregate, Expected: place.Version}
}

func (l *layout) CommandKey(commandID string) table.Item {
	return table.Item{
		l.Config.Attributes.PartitionKey: table.StringValue(engine.CommandPartition(commandID)),
		l.Config.Attributes.SortKey:      table.StringValue("command"),
	}
}

// guardItem returns the guard of a command. It has neither an aggregate id nor a time, so no index
// lists it.
func (l *layout) guardItem(t *commit) table.Item {
	it := l.guardKey(t.Commit.Aggregate, t.Commit.CommandID)
	it[engine.AttrCommandID] = table.StringValue(t.Commit.CommandID)
	it[engine.AttrCommitID] = table.StringValue(t.Receipt.CommitID)
	it[engine.AttrCommitFirst] = table.NumberValue(t.Commit.Expected + 1)
	it[engine.AttrCommitVersion] = table.NumberValue(t.Receipt.Version)
	if keep := l.Config.CommandRetention; keep > 0 {
		// TTL is in whole seconds; round up so that the guard does not expire too early.
		it[l.Config.Attributes.TTL] = table.NumberValue(t.Receipt.OccurredAt.Add(keep).Unix() + 1)
	}
	return it
}

func (l *layout) commandOf(it table.Item) (c storage.Command, err error) {
	var idOK, commitOK, firstOK, versionOK bool
	c.ID, idOK = table.StringOf(it[engine.AttrCommandID])
	c.CommitID, commitOK = table.StringOf(it[engine.AttrCommitID])
	c.First, firstOK = table.UintOf(it[engine.AttrCommitFirst])
	c.Version, versionOK = table.UintOf(it[engine.AttrCommitVersion])
	if !idOK || !commitOK || !firstOK || !versionOK {
		partition, sort := l.KeysOf(it)
		return storage.Command{}, &journaltype.CorruptItemError{
			Table: l.Config.Tables.Journal, PartitionKey: partition, SortKey: sort, Reason: "is not the guard of a command",
		}
	}
	return c, nil
}

// checkVersion returns the action on the head for a commit without events. The action checks that
// the version is still the one on which the command was decided.
func (l *layout) checkVersion(c *storage.Commit) types.TransactWriteItem {
	check := &types.ConditionCheck{
		TableName:                           &l.Config.Tables.Snapshot,
		Key:                                 l.key(c.Aggregate, 0),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	condition, names, values := l.versionCondition(c)
	check.ConditionExpression, check.ExpressionAttributeNames, check.ExpressionAttributeValues = &condition, names, values
	return types.TransactWriteItem{ConditionCheck: check}
}
