package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

const (
	positionPrefix = "position/"
	// positionSuffix is also the suffix of the sort keys of heads. So positions and heads of a
	// shard have the same order, and both can be read from first to last to compare them.
	positionSuffix = "-0"
)

func positionSort(value string) string { return positionPrefix + value + positionSuffix }

func (s *Store) positionKey(group Group, id aggregate.ID) item {
	return s.key(s.shardOf(group, id).partition(), positionSort(id.Value))
}

// Claim writes the epoch to the group's position on an aggregate and returns the position. found is
// false if no position is stored yet. It costs one round trip and one write unit.
func (s *Store) Claim(ctx context.Context, group Group, id aggregate.ID, epoch uint64) (position uint64, found bool, err error) {
	if s.rows != nil {
		return s.rows.Claim(ctx, group, id, epoch)
	}
	row, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.positionKey(group, id),
		UpdateExpression:          aws.String("SET #e = :e"),
		ConditionExpression:       aws.String(notNewer),
		ExpressionAttributeNames:  names(),
		ExpressionAttributeValues: item{":e": number(epoch)},
	})
	if err == nil {
		position, err = uintOf(row[attrPosition])
	}
	if err != nil {
		return 0, false, fmt.Errorf("claim position on %s: %w", id, err)
	}
	return position, row[attrPosition] != nil, nil
}

// ReadPosition reads the group's position on an aggregate with strong consistency. found is false
// if no position is stored yet. ErrFenced reports that the position has a newer epoch. It costs one
// round trip and one read unit.
//
// A read does not keep others from moving the position. A former owner may still store what its
// handlers have acked, and the next write continues from there.
func (s *Store) ReadPosition(ctx context.Context, group Group, id aggregate.ID, epoch uint64) (position uint64, found bool, err error) {
	if s.rows != nil {
		if position, found, err = s.rows.readRow(ctx, RowOf{group, id, epoch}); err != nil {
			err = fmt.Errorf("read position on %s: %w", id, err)
		}
		return position, found, err
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.positionKey(group, id), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		err = s.explain(err)
	} else {
		position, err = positionUnder(out.Item, epoch)
	}
	if err != nil {
		return 0, false, fmt.Errorf("read position on %s: %w", id, err)
	}
	return position, out.Item[attrPosition] != nil, nil
}

// positionUnder returns the position of a row, or ErrFenced if the row has a newer epoch.
func positionUnder(row item, epoch uint64) (uint64, error) {
	stamped, err := uintOf(row[attrEpoch])
	if err != nil {
		return 0, err
	}
	if stamped > epoch {
		return 0, ErrFenced
	}
	return uintOf(row[attrPosition])
}

// StorePosition moves a position forward to the number to, and returns the stored position. That is
// a higher number if a former owner had handled more events. was is the position before. ErrFenced
// reports that the position has a newer epoch. StorePosition needs no claim and may be repeated. It
// costs one round trip and one write unit.
func (s *Store) StorePosition(ctx context.Context, group Group, id aggregate.ID, epoch, to uint64) (position, was uint64, err error) {
	row, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.positionKey(group, id),
		UpdateExpression:          aws.String("SET #e = :e, #p = :to"),
		ConditionExpression:       aws.String(notNewer + " AND (attribute_not_exists(#p) OR #p < :to)"),
		ExpressionAttributeNames:  names("#p", attrPosition),
		ExpressionAttributeValues: item{":e": number(epoch), ":to": number(to)},
		ReturnValues:              types.ReturnValueAllOld,
	})
	refused := errors.Is(err, ErrFenced)
	if err == nil || refused {
		was, err = positionUnder(row, epoch)
	}
	if err == nil && refused && was < to { // the condition excludes this
		err = fmt.Errorf("%w: its row refuses to move from %d", ErrCorrupt, was)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("store position on %s at %d: %w", id, to, err)
	}
	return max(was, to), was, nil
}

// Advance moves a claimed position. It costs one round trip and one write unit.
func (s *Store) Advance(ctx context.Context, group Group, id aggregate.ID, epoch, from, to uint64) error {
	u := s.AdvanceItem(group, id, epoch, from, to).Update
	row, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       u.Key,
		UpdateExpression:          u.UpdateExpression,
		ConditionExpression:       u.ConditionExpression,
		ExpressionAttributeNames:  u.ExpressionAttributeNames,
		ExpressionAttributeValues: u.ExpressionAttributeValues,
	})
	if errors.Is(err, ErrFenced) && Reached(row, epoch, to) {
		return nil // the reply to the first attempt was lost
	}
	if err != nil {
		return fmt.Errorf("advance position on %s from %d to %d: %w", id, from, to, err)
	}
	return nil
}

// AdvanceItem returns the write of Advance for a transaction of the caller. If its condition is
// false, [Reached] reports by the old item whether an earlier attempt succeeded. If from is 0, no
// claim is needed: the write creates the row, unless a row with a newer epoch exists.
func (s *Store) AdvanceItem(group Group, id aggregate.ID, epoch, from, to uint64) types.TransactWriteItem {
	if s.rows != nil {
		return types.TransactWriteItem{Update: s.rows.Rows.Advance(RowOf{group, id, epoch}, from, to)}
	}
	update, condition := "SET #p = :to", "#e = :e AND #p = :from"
	values := item{":e": number(epoch), ":from": number(from), ":to": number(to)}
	if from == 0 {
		update, condition = "SET #p = :to, #e = :e", notNewer+" AND (attribute_not_exists(#p) OR #p = :from)"
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                           &s.table,
		Key:                                 s.positionKey(group, id),
		UpdateExpression:                    &update,
		ConditionExpression:                 &condition,
		ExpressionAttributeNames:            names("#p", attrPosition),
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// Reached reports whether a position row has this epoch and number.
func Reached(row map[string]types.AttributeValue, epoch, number uint64) bool {
	e, err := uintOf(row[attrEpoch])
	p, err2 := uintOf(row[attrPosition])
	return err == nil && err2 == nil && e == epoch && p == number
}

// Moved reports whether a position row has the caller's epoch and another number than from. That
// means that an earlier attempt of the caller moved it late.
func Moved(row map[string]types.AttributeValue, epoch, from uint64) bool {
	e, err := uintOf(row[attrEpoch])
	p, err2 := uintOf(row[attrPosition])
	return err == nil && err2 == nil && e == epoch && p != from
}

// PutPosition sets a position to any number, also a lower one. It is for an operator that holds the
// shard under the epoch. It costs one round trip and two write units, because it is a transaction:
// DynamoDB recognises a transaction that is sent again after its reply was lost. So ErrFenced
// always means that the position was not set, even if the next owner has moved it since.
//
// In a row that holds the position it also costs a claim. Position 0 empties the row.
func (s *Store) PutPosition(ctx context.Context, group Group, id aggregate.ID, epoch, to uint64) error {
	if s.rows != nil {
		if _, _, err := s.Claim(ctx, group, id, epoch); err != nil {
			return err
		}
	}
	err := s.transact(ctx, s.putPositionItem(group, id, epoch, to))
	if err == nil {
		return nil
	}
	if _, refused := refusal(err); refused {
		err = ErrFenced
	} else {
		err = s.explain(err)
	}
	return fmt.Errorf("put position on %s to %d: %w", id, to, err)
}

func (s *Store) putPositionItem(group Group, id aggregate.ID, epoch, to uint64) types.TransactWriteItem {
	if s.rows != nil {
		return s.rows.putItem(RowOf{group, id, epoch}, to)
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                           &s.table,
		Key:                                 s.positionKey(group, id),
		UpdateExpression:                    aws.String("SET #e = :e, #p = :p"),
		ConditionExpression:                 aws.String(notNewer),
		ExpressionAttributeNames:            names("#p", attrPosition),
		ExpressionAttributeValues:           item{":e": number(epoch), ":p": number(to)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}
