package journal

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
)

func (l *ClassicStorage) Command(ctx context.Context, id aggregate.ID, commandID string) (storage.Command, bool, error) {
	// A transaction waits while the commit is being written. A plain read could miss the guard
	// although the aggregate already shows the commit.
	items, err := l.TransactGet(ctx, l.Config.Tables.Journal, []Item{l.guardKey(id, commandID)})
	if len(items) == 0 || err != nil {
		return storage.Command{}, false, err
	}
	c, err := l.commandOf(items[0])
	return c, err == nil, err
}

// guardKey returns a key in the partition of the aggregate's events. Command ids differ in length,
// so the key holds a digest of fixed length. It is not longer than the number in an event's key.
// Its last character is not a digit, so it is never the key of an event.
func (l *ClassicStorage) guardKey(id aggregate.ID, commandID string) Item {
	sum := sha256.Sum256([]byte(commandID))
	digest := base64.RawURLEncoding.EncodeToString(sum[:])[:19] // 114 bits
	return Item{
		l.Config.Attributes.PartitionKey: StringValue(l.partitionKey(id)),
		l.Config.Attributes.SortKey:      StringValue(id.Type + "-" + id.Value + "-" + digest + "~"),
	}
}

func (l *ClassicStorage) Unchanged(ctx context.Context, places []storage.Place) error {
	keys, at := make([]Item, len(places)), map[[2]string]int{}
	for i, p := range places {
		keys[i] = l.key(p.Aggregate, 0)
		partition, sort := l.KeysOf(keys[i])
		at[[2]string{partition, sort}] = i
	}
	items, err := l.TransactGetUnless(ctx, l.Config.Tables.Snapshot, keys, func(ctx context.Context, key int) error {
		return l.hasMoved(ctx, places[key])
	})
	var canceled *types.TransactionCanceledException
	if dynamo.Code(err) == "ValidationException" || errors.As(err, &canceled) && slices.ContainsFunc(canceled.CancellationReasons, IsFinal) {
		return &TooLargeError{
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
			return &ConflictError{ID: head.Aggregate, Expected: places[i].Version}
		}
	}
	for i, p := range places {
		if versions[i] != p.Version {
			return &ConflictError{ID: p.Aggregate, Expected: p.Version, Actual: versions[i]}
		}
	}
	return nil
}

// hasMoved returns a [*ConflictError] if the head has another version than place.
func (l *ClassicStorage) hasMoved(ctx context.Context, place storage.Place) error {
	version, err := l.Version(ctx, place.Aggregate)
	switch {
	case errors.As(err, new(*DeletedError)):
		return &ConflictError{ID: place.Aggregate, Expected: place.Version}
	case err != nil && !errors.Is(err, ErrNotFound):
		return err
	case version != place.Version:
		return &ConflictError{ID: place.Aggregate, Expected: place.Version, Actual: version}
	}
	return nil
}

func (l *ClassicStorage) CommandKey(commandID string) Item {
	return Item{
		l.Config.Attributes.PartitionKey: StringValue(CommandPartition(commandID)),
		l.Config.Attributes.SortKey:      StringValue("command"),
	}
}

// guardItem returns the guard of a command. It has neither an aggregate id nor a time, so no index
// lists it.
func (l *ClassicStorage) guardItem(t *transaction) Item {
	it := l.guardKey(t.Commit.Aggregate, t.Commit.CommandID)
	it[AttrCommandID] = StringValue(t.Commit.CommandID)
	it[AttrCommitID] = StringValue(t.Receipt.CommitID)
	it[AttrCommitFirst] = NumberValue(t.Commit.Expected + 1)
	it[AttrCommitVersion] = NumberValue(t.Receipt.Version)
	if keep := l.Config.CommandRetention; keep > 0 {
		// TTL is in whole seconds; round up so that the guard does not expire too early.
		it[l.Config.Attributes.TTL] = NumberValue(t.Receipt.OccurredAt.Add(keep).Unix() + 1)
	}
	return it
}

func (l *ClassicStorage) commandOf(it Item) (c storage.Command, err error) {
	var idOK, commitOK, firstOK, versionOK bool
	c.ID, idOK = StringOf(it[AttrCommandID])
	c.CommitID, commitOK = StringOf(it[AttrCommitID])
	c.First, firstOK = UintOf(it[AttrCommitFirst])
	c.Version, versionOK = UintOf(it[AttrCommitVersion])
	if !idOK || !commitOK || !firstOK || !versionOK {
		partition, sort := l.KeysOf(it)
		return storage.Command{}, &CorruptItemError{
			Table: l.Config.Tables.Journal, PartitionKey: partition, SortKey: sort, Reason: "is not the guard of a command",
		}
	}
	return c, nil
}

// checkVersion returns the action on the head for a commit without events. The action checks that
// the version is still the one on which the command was decided.
func (l *ClassicStorage) checkVersion(c *storage.Commit) types.TransactWriteItem {
	check := &types.ConditionCheck{
		TableName:                           &l.Config.Tables.Snapshot,
		Key:                                 l.key(c.Aggregate, 0),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	condition, names, values := l.versionCondition(c)
	check.ConditionExpression, check.ExpressionAttributeNames, check.ExpressionAttributeValues = &condition, names, values
	return types.TransactWriteItem{ConditionCheck: check}
}
