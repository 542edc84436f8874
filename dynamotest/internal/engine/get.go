package engine

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// GetItem implements the operation.
func (db *Database) GetItem(c *Cost, in *dynamodb.GetItemInput, f *Interference) (*dynamodb.GetItemOutput, error) {
	t, err := db.table(in.TableName)
	if err != nil {
		return nil, err
	}
	if in.Key == nil {
		return nil, required("key")
	}
	a, err := placeholders(in.ExpressionAttributeNames, nil, projectionSource(in.ProjectionExpression))
	if err != nil {
		return nil, err
	}
	p, err := parseProjection(in.ProjectionExpression, a)
	if err != nil {
		return nil, err
	}
	if err := a.CheckUsed(); err != nil {
		return nil, err
	}
	at, err := t.find(in.Key)
	if err != nil {
		return nil, plain(err)
	}
	if err := db.rlock(t); err != nil {
		return nil, err
	}
	r := db.seen(t, at, f, 0)
	t.mu.RUnlock()
	units := consistency(in.ConsistentRead) * readUnits(int(sizeOf(r)))
	if err := db.admit(c, t.reading(at, in.Key, units)); err != nil {
		return nil, err
	}
	c.read(t, nil, units)
	if r != nil {
		c.Returned++
	}
	return &dynamodb.GetItemOutput{Item: project(p, r.content())}, nil
}

// find returns the position of a key.
func (t *table) find(key value.Item) (position, error) {
	key, err := value.NormalizeItem(key)
	if err != nil {
		return position{}, err
	}
	if err := t.checkKey(key); err != nil {
		return position{}, err
	}
	return t.key.positionOf(key), nil
}
