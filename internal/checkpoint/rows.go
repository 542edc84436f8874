package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
)

// Rows describes the rows of a read model that are the positions of its group: one row for each
// aggregate. The value of the partition key is Prefix and the value of the id. The membership holds
// this description, so that tools find the rows.
type Rows struct {
	Table, PartitionKey, Prefix string
	// SortKey is an attribute and Sort its value. Both are empty if the table has no sort key.
	SortKey, Sort string
}

// RowAttributes is the prefix of the attributes in which a row holds its position. The rest of the
// row belongs to the read model.
const RowAttributes = "millrace_"

const (
	rowGroup  = RowAttributes + "group" // the group and the topic
	rowResets = RowAttributes + "resets"
	rowEpoch  = RowAttributes + "epoch"
	rowNumber = RowAttributes + "number" // the position; absent in a row that was only claimed
)

var (
	// ErrRowTaken reports an item at the key of a row that does not belong to the group.
	ErrRowTaken = errors.New("the item at the key of the row does not belong to the consumer group")
	// ErrRowGone reports a row that was deleted or replaced since the caller claimed it.
	ErrRowGone = errors.New("the row was deleted or replaced since it was claimed")
	// ErrRowKeys reports a table with other keys.
	ErrRowKeys = errors.New("the table of the rows has other keys")
)

// RowClient is the part of a *dynamodb.Client that [RowPositions] uses.
type RowClient interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
}

// RowPositions reads and writes positions that are in rows of a read model.
type RowPositions struct {
	Rows
	Client RowClient
}

// RowOf identifies the position of a group on an aggregate, and its owner.
type RowOf struct {
	Group     Group
	Aggregate aggregate.ID
	Epoch     uint64
}

// owner is the value of rowGroup. The name of a group contains no slash.
func (o RowOf) owner() string { return o.Group.Name + "/" + o.Aggregate.Type }

// Key returns the key of an aggregate's row.
func (r Rows) Key(id aggregate.ID) map[string]types.AttributeValue {
	key := item{r.PartitionKey: text(r.Prefix + id.Value)}
	if r.SortKey != "" {
		key[r.SortKey] = text(r.Sort)
	}
	return key
}

// keyName is the placeholder of the partition key. The other names need none.
func (r Rows) keyName() map[string]string { return map[string]string{"#millrace_k": r.PartitionKey} }

func (o RowOf) values() item {
	return item{":millrace_g": text(o.owner()), ":millrace_r": number(o.Group.Resets), ":millrace_e": number(o.Epoch)}
}

// Conditions of writes to a row.
const (
	rowOfReset   = "millrace_group = :millrace_g AND millrace_resets = :millrace_r"
	rowNotNewer  = rowOfReset + " AND millrace_epoch <= :millrace_e"
	rowOwned     = rowOfReset + " AND millrace_epoch = :millrace_e"
	rowOutdated  = "millrace_group = :millrace_g AND millrace_resets < :millrace_r"
	rowMissing   = "attribute_not_exists(#millrace_k)"
	rowAt        = " AND millrace_number = :millrace_from"
	rowBeginning = " AND (attribute_not_exists(millrace_number) OR millrace_number = :millrace_from)"
	rowOwner     = "millrace_group = :millrace_g, millrace_resets = :millrace_r, millrace_epoch = :millrace_e"
)

// Advance returns the write that moves a claimed position. The caller can add updates of other
// attributes to it. If its condition is false, Refused returns the reason. If from is 0, no claim
// is needed: the write creates the row.
func (r Rows) Advance(o RowOf, from, to uint64) *types.Update {
	update, condition := "SET millrace_number = :millrace_to", rowOwned+rowAt
	var names map[string]string
	if from == 0 {
		update += ", " + rowOwner
		condition = rowMissing + " OR " + rowNotNewer + rowBeginning
		names = r.keyName()
	}
	values := o.values()
	values[":millrace_from"], values[":millrace_to"] = number(from), number(to)
	return &types.Update{
		TableName:                           aws.String(r.Table),
		Key:                                 r.Key(o.Aggregate),
		UpdateExpression:                    &update,
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// Refused returns the reason for which the condition of Advance was false, by the old row. It is
// nil if an earlier attempt at the same write has succeeded. After ErrMoved and ErrRowGone the
// caller claims the position again.
func (r Rows) Refused(o RowOf, old map[string]types.AttributeValue, to uint64) error {
	if len(old) == 0 {
		return fmt.Errorf("%w: %s in table %q", ErrRowGone, r.Prefix+o.Aggregate.Value, r.Table)
	}
	is, err := r.stateOf(o, old)
	switch {
	case err != nil:
		return err
	case is.resets != o.Group.Resets || is.epoch != o.Epoch:
		return fmt.Errorf("%w: %s in table %q", ErrRowGone, r.Prefix+o.Aggregate.Value, r.Table)
	case is.found && is.number == to:
		return nil
	default:
		return ErrMoved
	}
}

// rowState is the position that a row holds.
type rowState struct {
	resets, epoch, number uint64
	found                 bool
}

// stateOf decodes a row. It returns ErrRowTaken for a row of others, and ErrFenced for a row with a
// newer epoch or of a later reset.
func (r Rows) stateOf(o RowOf, row item) (is rowState, err error) {
	if owner := textOf(row[rowGroup]); owner != o.owner() {
		return is, r.taken(o, owner)
	}
	var errs [3]error
	is.resets, errs[0] = uintOf(row[rowResets])
	is.epoch, errs[1] = uintOf(row[rowEpoch])
	is.number, errs[2] = uintOf(row[rowNumber])
	is.found = row[rowNumber] != nil
	if err := errors.Join(errs[:]...); err != nil {
		return is, fmt.Errorf("row %s of table %q: %w", r.Prefix+o.Aggregate.Value, r.Table, err)
	}
	if is.resets > o.Group.Resets || is.resets == o.Group.Resets && is.epoch > o.Epoch {
		return is, ErrFenced
	}
	return is, nil
}

func (r Rows) taken(o RowOf, owner string) error {
	whose := fmt.Sprintf("to %q (group/topic)", owner)
	if owner == "" {
		whose = "to no group"
	}
	return fmt.Errorf("%w: item %s of table %q belongs %s, and not to %q: use another table or Prefix for each group and topic, and remove items that others have put there",
		ErrRowTaken, r.Prefix+o.Aggregate.Value, r.Table, whose, o.owner())
}

// claimAttempts limits the requests of a claim of a row that others change at the same time.
const claimAttempts = 4

// Claim writes the epoch to a row and returns its position. found is false if it has none yet. If
// there is no row, Claim creates it. A row of an earlier reset is replaced by an empty one. It
// costs one write unit for each KB of the row, and twice that for a row of an earlier reset.
func (p RowPositions) Claim(ctx context.Context, group Group, id aggregate.ID, epoch uint64) (position uint64, found bool, err error) {
	o := RowOf{group, id, epoch}
	for attempt := 1; attempt <= claimAttempts; attempt++ {
		var row item
		if row, err = updateIf(ctx, p.Client, p.claim(o), p.explain); err == nil {
			position, err = uintOf(row[rowNumber])
			found = row[rowNumber] != nil
			break
		}
		if !errors.Is(err, ErrFenced) {
			break
		}
		var is rowState
		if is, err = p.stateOf(o, row); err != nil {
			break
		}
		if is.resets < group.Resets {
			if err = p.replace(ctx, o); err == nil || !errors.Is(err, ErrFenced) {
				break
			}
		}
		err = ErrRowGone // it has changed meanwhile
	}
	if err != nil {
		return 0, false, fmt.Errorf("claim position on %s: %w", id, err)
	}
	return position, found, nil
}

func (r Rows) claim(o RowOf) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: aws.String(r.Table), Key: r.Key(o.Aggregate),
		UpdateExpression:          aws.String("SET " + rowOwner),
		ConditionExpression:       aws.String(rowMissing + " OR " + rowNotNewer),
		ExpressionAttributeNames:  r.keyName(),
		ExpressionAttributeValues: o.values(),
		ReturnValues:              types.ReturnValueAllNew,
	}
}

// replace replaces a row of an earlier reset by an empty one.
func (p RowPositions) replace(ctx context.Context, o RowOf) error {
	_, err := p.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: aws.String(p.Table), Item: p.empty(o),
		ConditionExpression:       aws.String(rowMissing + " OR " + rowOutdated),
		ExpressionAttributeNames:  p.keyName(),
		ExpressionAttributeValues: item{":millrace_g": text(o.owner()), ":millrace_r": number(o.Group.Resets)},
	})
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return ErrFenced
	}
	return p.explain(err)
}

// empty returns a row without attributes of the read model and without a position.
func (r Rows) empty(o RowOf) item {
	row := r.Key(o.Aggregate)
	row[rowGroup], row[rowResets], row[rowEpoch] = text(o.owner()), number(o.Group.Resets), number(o.Epoch)
	return row
}

// Advance moves a claimed position. It costs one write unit for each KB of the row.
func (p RowPositions) Advance(ctx context.Context, group Group, id aggregate.ID, epoch, from, to uint64) error {
	o := RowOf{group, id, epoch}
	if err := p.Apply(ctx, o, p.Rows.Advance(o, from, to), to); err != nil {
		return fmt.Errorf("advance position on %s from %d to %d: %w", id, from, to, err)
	}
	return nil
}

// Apply sends a write that Advance has returned. It returns nil also if an earlier attempt at the
// same write has succeeded.
func (p RowPositions) Apply(ctx context.Context, o RowOf, u *types.Update, to uint64) error {
	row, err := updateIf(ctx, p.Client, &dynamodb.UpdateItemInput{
		TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
		ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
	}, p.explain)
	if errors.Is(err, ErrFenced) {
		return p.Refused(o, row, to)
	}
	return err
}

// Position reads a position with strong consistency. found is false if there is none, also if the
// row is of an earlier reset or belongs to others. It costs one read unit for each 4 KB of the row.
func (p RowPositions) Position(ctx context.Context, group Group, id aggregate.ID) (position uint64, found bool, err error) {
	out, err := p.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(p.Table), Key: p.Key(id), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		err = p.explain(err)
	} else {
		position, found, err = p.positionOf(group, id, out.Item)
	}
	if err != nil {
		return 0, false, fmt.Errorf("read position on %s: %w", id, err)
	}
	return position, found, nil
}

// positionOf returns the position of a row, whatever its epoch is.
func (r Rows) positionOf(group Group, id aggregate.ID, row item) (position uint64, found bool, err error) {
	own, err := isOf(group, id, row)
	if own {
		position, err = uintOf(row[rowNumber])
		found = err == nil && row[rowNumber] != nil
	}
	return position, found, err
}

// isOf reports whether a row belongs to a group since its last reset.
func isOf(group Group, id aggregate.ID, row item) (bool, error) {
	if textOf(row[rowGroup]) != (RowOf{Group: group, Aggregate: id}).owner() {
		return false, nil
	}
	resets, err := uintOf(row[rowResets])
	return err == nil && resets == group.Resets, err
}

func (r Rows) explain(err error) error {
	if err == nil {
		return nil
	}
	if isOfKeys(err) {
		return fmt.Errorf("%w: table %q needs the partition key %q and the sort key %q, of type string: %w", ErrRowKeys, r.Table, r.PartitionKey, r.SortKey, err)
	}
	return dynamo.ExplainFor(err, r.Table, "projection.CreateTable")
}

// isOfKeys compares the text of DynamoDB's error, because it has no type or code of its own.
func isOfKeys(err error) bool {
	if dynamo.Code(err) != "ValidationException" {
		return false
	}
	for _, part := range []string{"does not match the schema", "Type mismatch for key", "Missing the key", "required keys was not given", "conditions on the keys"} {
		if strings.Contains(err.Error(), part) {
			return true
		}
	}
	return false
}
