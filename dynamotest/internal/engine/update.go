package engine

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// UpdateItem implements the operation.
func (db *Database) UpdateItem(c *Cost, in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
	t, err := db.table(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := first(
		checkReturnValues(in.ReturnValues, in.ReturnValues.Values()...),
		checkReturnOnFailure(in.ReturnValuesOnConditionCheckFailure),
	); err != nil {
		return nil, err
	}
	if in.Key == nil {
		return nil, required("key")
	}
	a, err := placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues,
		source{"UpdateExpression", in.UpdateExpression, true}, conditionSource(in.ConditionExpression))
	if err != nil {
		return nil, err
	}
	w, err := onKey(updateItem, in.Key, in.ConditionExpression, in.UpdateExpression, a)
	if err != nil {
		return nil, err
	}
	old, next, err := db.run(c, t, &w, in.ReturnValuesOnConditionCheckFailure)
	if err != nil {
		return nil, err
	}
	return &dynamodb.UpdateItemOutput{
		Attributes:            updated(&w, in.ReturnValues, old, next),
		ItemCollectionMetrics: metrics(&w, in.ReturnItemCollectionMetrics),
	}, nil
}

// updated returns the item that an update returns.
func updated(w *write, asked types.ReturnValue, old, next value.Item) value.Item {
	switch asked {
	case types.ReturnValueAllOld:
		return old
	case types.ReturnValueAllNew:
		return next
	case types.ReturnValueUpdatedOld:
		return written(w, old)
	case types.ReturnValueUpdatedNew:
		return written(w, next)
	}
	return nil
}

// written returns the part of an item that an update wrote, nil if there is none.
func written(w *write, item value.Item) value.Item {
	if w.update == nil {
		return nil
	}
	if part := w.update.Select(item); len(part) > 0 {
		return part
	}
	return nil
}
