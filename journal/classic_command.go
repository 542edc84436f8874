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

func (l *classic) command(ctx context.Context, id aggregate.ID, commandID string) (storage.Command, bool, error) {
	// A transaction waits while the commit is being written. A plain read could miss the guard
	// although the aggregate already shows the commit.
	items, err := l.transactGet(ctx, l.config.Tables.Journal, []item{l.guardKey(id, commandID)})
	if len(items) == 0 || err != nil {
		return storage.Command{}, false, err
	}
	c, err := l.commandOf(items[0])
	return c, err == nil, err
}

// guardKey returns a key in the partition of the aggregate's events. Command ids differ in length,
// so the key holds a digest of fixed length. It is not longer than the number in an event's key.
// Its last character is not a digit, so it is never the key of an event.
func (l *classic) guardKey(id aggregate.ID, commandID string) item {
	sum := sha256.Sum256([]byte(commandID))
	digest := base64.RawURLEncoding.EncodeToString(sum[:])[:19] // 114 bits
	return item{
		l.config.Attributes.PartitionKey: stringValue(l.partitionKey(id)),
		l.config.Attributes.SortKey:      stringValue(id.Type + "-" + id.Value + "-" + digest + "~"),
	}
}

func (l *classic) unchanged(ctx context.Context, places []storage.Place) error {
	keys, at := make([]item, len(places)), map[[2]string]int{}
	for i, p := range places {
		keys[i] = l.key(p.Aggregate, 0)
		partition, sort := l.keysOf(keys[i])
		at[[2]string{partition, sort}] = i
	}
	items, err := l.transactGetUnless(ctx, l.config.Tables.Snapshot, keys, func(ctx context.Context, key int) error {
		return l.hasMoved(ctx, places[key])
	})
	var canceled *types.TransactionCanceledException
	if dynamo.Code(err) == "ValidationException" || errors.As(err, &canceled) && slices.ContainsFunc(canceled.CancellationReasons, isFinal) {
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
		partition, sort := l.keysOf(it)
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
func (l *classic) hasMoved(ctx context.Context, place storage.Place) error {
	version, err := l.version(ctx, place.Aggregate)
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

func (l *classic) commandKey(commandID string) item {
	return item{
		l.config.Attributes.PartitionKey: stringValue(commandPartition(commandID)),
		l.config.Attributes.SortKey:      stringValue("command"),
	}
}

// guardItem returns the guard of a command. It has neither an aggregate id nor a time, so no index
// lists it.
func (l *classic) guardItem(t *transaction) item {
	it := l.guardKey(t.Commit.Aggregate, t.Commit.CommandID)
	it[attrCommandID] = stringValue(t.Commit.CommandID)
	it[attrCommitID] = stringValue(t.receipt.CommitID)
	it[attrCommitFirst] = numberValue(t.Commit.Expected + 1)
	it[attrCommitVersion] = numberValue(t.receipt.Version)
	if keep := l.config.CommandRetention; keep > 0 {
		// TTL is in whole seconds; round up so that the guard does not expire too early.
		it[l.config.Attributes.TTL] = numberValue(t.receipt.OccurredAt.Add(keep).Unix() + 1)
	}
	return it
}

func (l *classic) commandOf(it item) (c storage.Command, err error) {
	var idOK, commitOK, firstOK, versionOK bool
	c.ID, idOK = stringOf(it[attrCommandID])
	c.CommitID, commitOK = stringOf(it[attrCommitID])
	c.First, firstOK = uintOf(it[attrCommitFirst])
	c.Version, versionOK = uintOf(it[attrCommitVersion])
	if !idOK || !commitOK || !firstOK || !versionOK {
		partition, sort := l.keysOf(it)
		return storage.Command{}, &CorruptItemError{
			Table: l.config.Tables.Journal, PartitionKey: partition, SortKey: sort, Reason: "is not the guard of a command",
		}
	}
	return c, nil
}

// checkVersion returns the action on the head for a commit without events. The action checks that
// the version is still the one on which the command was decided.
func (l *classic) checkVersion(c *storage.Commit) types.TransactWriteItem {
	check := &types.ConditionCheck{
		TableName:                           &l.config.Tables.Snapshot,
		Key:                                 l.key(c.Aggregate, 0),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	condition, names, values := l.versionCondition(c)
	check.ConditionExpression, check.ExpressionAttributeNames, check.ExpressionAttributeValues = &condition, names, values
	return types.TransactWriteItem{ConditionCheck: check}
}
