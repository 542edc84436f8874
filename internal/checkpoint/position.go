package checkpoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

const positionPrefix = "position/"

func (s *Store) shardPartition(group string, id aggregate.ID) string {
	return group + "/" + journal.ShardKey(id.Type, s.journal.Shard(id))
}

func (s *Store) positionKey(group string, id aggregate.ID) item {
	return s.key(s.shardPartition(group, id), positionPrefix+id.Value)
}

// Claim stamps the epoch on the group's position on an aggregate and gives the position, 0
// where there is none yet. One round trip, one write unit.
func (s *Store) Claim(ctx context.Context, group string, id aggregate.ID, epoch uint64) (uint64, error) {
	row, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                       s.positionKey(group, id),
		UpdateExpression:          aws.String("SET #e = :e"),
		ConditionExpression:       aws.String(notNewer),
		ExpressionAttributeNames:  names(),
		ExpressionAttributeValues: item{":e": number(epoch)},
	})
	if err != nil {
		return 0, fmt.Errorf("claim position on %s: %w", id, err)
	}
	return uintOf(row[attrPosition]), nil
}

// Advance moves a claimed position. One round trip, one write unit.
func (s *Store) Advance(ctx context.Context, group string, id aggregate.ID, epoch, from, to uint64) error {
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

// AdvanceItem is Advance as a part of the caller's transaction. Where its condition
// is false, Reached tells from the old item whether it was done before. From 0 it
// needs no claim: it makes the row, unless a newer epoch was there first.
func (s *Store) AdvanceItem(group string, id aggregate.ID, epoch, from, to uint64) types.TransactWriteItem {
	update, condition := "SET #p = :to", "#e = :e AND #p = :from"
	values := item{":e": number(epoch), ":from": number(from), ":to": number(to)}
	if from == 0 {
		update, condition = "SET #p = :to, #e = :e", notNewer+" AND attribute_not_exists(#p)"
		delete(values, ":from")
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

// Reached tells that a position row stands at a number under an epoch.
func Reached(row map[string]types.AttributeValue, epoch, number uint64) bool {
	return uintOf(row[attrEpoch]) == epoch && uintOf(row[attrPosition]) == number
}
