package engine

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// PutItem implements the operation of DynamoDB with that name, like all such methods of a database.
func (db *Database) PutItem(c *Cost, in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
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
	if in.Item == nil {
		return nil, required("item")
	}
	a, err := placeholders(in.ExpressionAttributeNames, in.ExpressionAttributeValues, conditionSource(in.ConditionExpression))
	if err != nil {
		return nil, err
	}
	w, err := putting(in.Item, in.ConditionExpression, a)
	if err != nil {
		return nil, err
	}
	old, _, err := db.run(c, t, &w, in.ReturnValuesOnConditionCheckFailure)
	if err != nil {
		return nil, err
	}
	out := &dynamodb.PutItemOutput{ItemCollectionMetrics: metrics(&w, in.ReturnItemCollectionMetrics)}
	if in.ReturnValues == types.ReturnValueAllOld {
		out.Attributes = old
	}
	return out, nil
}

// metrics returns the estimated size of an item collection, if the request asks for it and the
// table has local indexes.
func metrics(w *write, asked types.ReturnItemCollectionMetrics) *types.ItemCollectionMetrics {
	if asked != types.ReturnItemCollectionMetricsSize || !w.t.local {
		return nil
	}
	item := w.item
	if item == nil {
		item = w.key
	}
	name := w.t.key.partition.name
	return &types.ItemCollectionMetrics{
		ItemCollectionKey:   value.Item{name: item[name]},
		SizeEstimateRangeGB: []float64{0, 1},
	}
}
