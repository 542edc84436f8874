package journal

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

const (
	attrCommandID     = "command_id"
	attrCommitFirst   = "commit_first"
	attrCommitVersion = "commit_version"

	// maxCommandID keeps the guard of an aggregate with a short id within one write unit.
	maxCommandID = 512
)

func (j *engine) Command(ctx context.Context, id aggregate.ID, commandID string) (storage.Command, bool, error) {
	if err := id.Validate(); err != nil {
		return storage.Command{}, false, err
	}
	if commandID == "" {
		return storage.Command{}, false, fmt.Errorf("read command: %w: the command id is empty", ErrInvalidCommit)
	}
	if err := validateCommandID(commandID); err != nil {
		return storage.Command{}, false, fmt.Errorf("read command: %w", err)
	}
	it, err := j.getItem(ctx, j.config.Tables.Journal, j.guardKey(id, commandID))
	if err != nil {
		return storage.Command{}, false, fmt.Errorf("read command %q of %s: %w", commandID, id, err)
	}
	if it == nil {
		return storage.Command{}, false, nil
	}
	c, err := j.commandOf(it)
	return c, err == nil, err
}

func validateCommandID(commandID string) error {
	switch {
	case len(commandID) > maxCommandID:
		return fmt.Errorf("%w: the command id has %d bytes, at most %d are allowed: use a digest of it", ErrInvalidCommit, len(commandID), maxCommandID)
	case !utf8.ValidString(commandID):
		return fmt.Errorf("%w: command id %q is not UTF-8: encode it as text", ErrInvalidCommit, commandID)
	}
	return nil
}

// guardKey is in the partition of the aggregate's events. A digest of fixed length keeps two ids
// apart whose texts run into each other, and is not longer than the number in an event's key; the
// last character is no digit, so it is never the key of an event.
func (j *engine) guardKey(id aggregate.ID, commandID string) item {
	sum := sha256.Sum256([]byte(commandID))
	digest := base64.RawURLEncoding.EncodeToString(sum[:])[:19] // 114 bits
	return item{
		j.config.Attributes.PartitionKey: stringValue(j.partitionKey(id)),
		j.config.Attributes.SortKey:      stringValue(id.Type + "-" + id.Value + "-" + digest + "~"),
	}
}

// guardItem has neither an aid nor a time, so no index lists it.
func (j *engine) guardItem(t *transaction) item {
	it := j.guardKey(t.commit.Aggregate, t.commit.CommandID)
	it[attrCommandID] = stringValue(t.commit.CommandID)
	it[attrCommitID] = stringValue(t.receipt.CommitID)
	it[attrCommitFirst] = numberValue(t.commit.Expected + 1)
	it[attrCommitVersion] = numberValue(t.receipt.Version)
	if keep := j.config.CommandRetention; keep > 0 {
		it[j.config.Attributes.TTL] = numberValue(t.receipt.OccurredAt.Add(keep).Unix() + 1) // whole seconds, and not too early
	}
	return it
}

func (j *engine) commandOf(it item) (c storage.Command, err error) {
	var idOK, commitOK, firstOK, versionOK bool
	c.ID, idOK = stringOf(it[attrCommandID])
	c.CommitID, commitOK = stringOf(it[attrCommitID])
	c.First, firstOK = uintOf(it[attrCommitFirst])
	c.Version, versionOK = uintOf(it[attrCommitVersion])
	if !idOK || !commitOK || !firstOK || !versionOK {
		partition, sort := j.keysOf(it)
		return storage.Command{}, &CorruptItemError{
			Table: j.config.Tables.Journal, PartitionKey: partition, SortKey: sort, Reason: "is not the guard of a command",
		}
	}
	return c, nil
}

// checkVersion is the head's part of a commit without events: it has to be where it was when the
// command was decided.
func (j *engine) checkVersion(c *commit) types.TransactWriteItem {
	check := &types.ConditionCheck{
		TableName:                           &j.config.Tables.Snapshot,
		Key:                                 j.key(c.Aggregate, 0),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	condition, names, values := j.versionCondition(c)
	check.ConditionExpression, check.ExpressionAttributeNames, check.ExpressionAttributeValues = &condition, names, values
	return types.TransactWriteItem{ConditionCheck: check}
}
