package engine

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
)

// TransactGetItems implements the operation.
func (db *Database) TransactGetItems(c *Cost, in *dynamodb.TransactGetItemsInput) (*dynamodb.TransactGetItemsOutput, error) {
	if err := counted("transactItems", "[]", len(in.TransactItems), maxActions); err != nil {
		return nil, err
	}
	type get struct {
		place
		projection *expression.Projection
	}
	gets := make([]get, len(in.TransactItems))
	tables := make([]*table, len(gets))
	seen := make(map[place]bool, len(gets))
	for i, action := range in.TransactItems {
		if action.Get == nil {
			return nil, required("transactItems.member.get")
		}
		if action.Get.Key == nil {
			return nil, required("transactItems.member.get.key")
		}
		g := &gets[i]
		var err error
		if g.t, err = db.table(action.Get.TableName); err != nil {
			return nil, err
		}
		a, err := placeholders(action.Get.ExpressionAttributeNames, nil, projectionSource(action.Get.ProjectionExpression))
		if err != nil {
			return nil, err
		}
		if g.projection, err = parseProjection(action.Get.ProjectionExpression, a); err != nil {
			return nil, err
		}
		if err := a.CheckUsed(); err != nil {
			return nil, err
		}
		if g.at, err = g.t.find(action.Get.Key); err != nil {
			var misfit unfit
			err, isUnfit := plain(err), errors.As(err, &misfit)
			if message(err) == mismatch && (isUnfit || len(action.Get.Key) != len(g.t.key.attributes())) {
				err = Cancelled(len(gets), []int{i}, "ValidationError", mismatch)
			}
			return nil, err
		}
		if seen[g.place] {
			return nil, apierror.Validation("Transaction request cannot include multiple operations on one item")
		}
		seen[g.place] = true
		tables[i] = g.t
	}
	unlock, err := db.lockAll(tables, db.rlock, (*table).runlock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	reasons := make([]types.CancellationReason, len(gets))
	out := &dynamodb.TransactGetItemsOutput{Responses: make([]types.ItemResponse, len(gets))}
	cancelled, bytes := false, 0
	needs := make([][]demand, len(gets))
	for i, g := range gets {
		reasons[i] = reasonOf(nil)
		if _, held := g.t.held[g.at]; held {
			reasons[i], cancelled = reason("TransactionConflict", ConflictMessage, nil), true
			continue
		}
		r := g.t.at(g.at)
		bytes += int(sizeOf(r))
		units := transactional * readUnits(int(sizeOf(r)))
		needs[i] = g.t.reading(g.at, in.TransactItems[i].Get.Key, units)()
		c.read(g.t, nil, units)
		if r != nil {
			c.Returned++
			out.Responses[i].Item = project(g.projection, r.item)
		}
	}
	if cancelled {
		return nil, cancellation(reasons)
	}
	if db.throughput != nil {
		if short := db.throughput.take(c, needs...); short != nil {
			*c = Cost{Exhausted: c.Exhausted}
			return nil, Cancelled(len(gets), short, ThrottledCode, ThrottledMessage)
		}
	}
	if bytes > maxTransactionBytes {
		return nil, apierror.Validation("Transaction payload size cannot exceed 4MB. Payload Size: %d", bytes)
	}
	return out, nil
}
