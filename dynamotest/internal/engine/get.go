package engine

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// GetItem is DynamoDB's.
func (db *Database) GetItem(c *Cost, in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
	if err := first(
		checkTableName(in.TableName),
		legacy("AttributesToGet", in.AttributesToGet != nil, "ProjectionExpression"),
	); err != nil {
		return nil, err
	}
	if in.Key == nil {
		return nil, required("key")
	}
	a, err := placeholders(in.ExpressionAttributeNames, nil, projectionSource(in.ProjectionExpression))
	if err != nil {
		return nil, err
	}
	p, err := projection(in.ProjectionExpression, a)
	if err != nil {
		return nil, err
	}
	if err := a.CheckUsed(); err != nil {
		return nil, err
	}
	t, at, err := db.find(in.TableName, in.Key)
	if err != nil {
		return nil, err
	}
	if err := db.rlock(t); err != nil {
		return nil, err
	}
	r := t.at(at)
	t.mu.RUnlock()
	c.read(t, nil, consistency(in.ConsistentRead)*readUnits(int(sizeOf(r))))
	if r != nil {
		c.Returned++
	}
	return &dynamodb.GetItemOutput{Item: project(p, r.content())}, nil
}

// find gives the table and the position that a key stands for.
func (db *Database) find(tableName *string, key value.Item) (*table, position, error) {
	t, err := db.table(tableName)
	if err != nil {
		return nil, position{}, err
	}
	if key, err = value.NormalizeItem(key); err != nil {
		return nil, position{}, err
	}
	if err := t.checkKey(key); err != nil {
		return nil, position{}, err
	}
	return t, t.key.positionOf(key), nil
}
