package engine

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DeleteItem implements the operation.
func (db *Database) DeleteItem(c *Cost, in *dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error) {
	t, err := db.table(in.TableName)
	if err != nil {
		return nil, err
	}
	if err := first(
		checkReturnValues(in.ReturnValues, types.ReturnValueNone, types.ReturnValueAllOld),
		checkReturnOnFailure(in.ReturnValuesOnConditionCheckFailure),
	); err != nil {
		return nil, err
	}
	if in.Key == nil {
		return nil, required("key")
	}
	a, err := placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues, conditionSource(in.ConditionExpression))
	if err != nil {
		return nil, err
	}
	w, err := onKey(deleteItem, in.Key, in.ConditionExpression, nil, a)
	if err != nil {
		return nil, err
	}
	old, _, err := db.run(c, t, &w, in.ReturnValuesOnConditionCheckFailure)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.DeleteItemOutput{ItemCollectionMetrics: metrics(&w, in.ReturnItemCollectionMetrics)}
	if in.ReturnValues == types.ReturnValueAllOld {
		out.Attributes = old
	}
	return out, nil
}
