package engine

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/expression"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// Limits of batches. Source: API reference of BatchGetItem and BatchWriteItem.
const (
	maxBatchGets   = 100
	maxBatchWrites = 25
	maxBatchBytes  = 16 << 20 // of a reply of BatchGetItem, and of a request of BatchWriteItem
)

// place identifies an item by table and position, to find duplicates in a request.
type place struct {
	t  *table
	at position
}

// BatchGetItem implements the operation. Keys that do not fit into the reply come back unprocessed.
func (db *Database) BatchGetItem(c *Cost, in *dynamodb.BatchGetItemInput, f *Interference) (*dynamodb.BatchGetItemOutput, error) {
	if len(in.RequestItems) == 0 {
		return nil, counted("requestItems", "{}", 0, maxBatchGets)
	}
	type get struct {
		place
		key     value.Item
		project func(value.Item) value.Item
	}
	keys := 0
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		ask := in.RequestItems[name]
		if err := checkTableName(&name); err != nil {
			return nil, err
		}
		if ask.AttributesToGet != nil {
			return nil, apierror.Validation("dynamotest does not support the parameter AttributesToGet of BatchGetItem: use ProjectionExpression")
		}
		keys += len(ask.Keys)
		if hasDuplicates(ask.Keys) {
			return nil, apierror.Validation("Provided list of item keys contains duplicates")
		}
		if len(ask.Keys) == 0 {
			return nil, counted("requestItems."+name+".member.keys", "[]", 0, maxBatchGets)
		}
	}
	if keys > maxBatchGets {
		return nil, apierror.Validation("Too many items requested for the BatchGetItem call")
	}
	gets := map[string][]get{}
	seen := make(map[place]bool, keys)
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		ask := in.RequestItems[name]
		t, err := db.table(&name)
		if err != nil {
			return nil, err
		}
		a, err := placeholders(ask.ExpressionAttributeNames, nil, projectionSource(ask.ProjectionExpression))
		if err != nil {
			return nil, err
		}
		p, err := parseProjection(ask.ProjectionExpression, a)
		if err != nil {
			return nil, err
		}
		if err := a.CheckUsed(); err != nil {
			return nil, err
		}
		for _, key := range ask.Keys {
			at, err := t.find(key)
			if err != nil {
				return nil, plain(err)
			}
			if seen[place{t, at}] {
				return nil, apierror.Validation("Provided list of item keys contains duplicates")
			}
			seen[place{t, at}] = true
			gets[name] = append(gets[name], get{place{t, at}, key, func(item value.Item) value.Item { return project(p, item) }})
		}
	}

	out := &dynamodb.BatchGetItemOutput{
		Responses:       make(map[string][]value.Item, len(gets)),
		UnprocessedKeys: map[string]types.KeysAndAttributes{},
	}
	bytes, n, processed := 0, -1, 0
	for _, name := range slices.Sorted(maps.Keys(gets)) {
		ask := in.RequestItems[name]
		items := []value.Item{}
		var left []value.Item
		for _, g := range gets[name] {
			if n++; f.withholds(n) {
				left = append(left, g.key)
				continue
			}
			if err := db.rlock(g.t); err != nil {
				return nil, err
			}
			r := db.seen(g.t, g.at, f, n)
			g.t.mu.RUnlock()
			if bytes += int(sizeOf(r)); bytes > maxBatchBytes {
				left = append(left, g.key)
				continue
			}
			units := consistency(ask.ConsistentRead) * readUnits(int(sizeOf(r)))
			if db.admit(c, g.t.reading(g.at, g.key, units)) != nil {
				left = append(left, g.key)
				continue
			}
			processed++
			c.read(g.t, nil, units)
			if r != nil {
				c.Returned++
				items = append(items, g.project(r.item))
			}
		}
		out.Responses[name] = items
		if left != nil {
			ask.Keys = left
			out.UnprocessedKeys[name] = ask
		}
	}
	if processed == 0 && len(c.Exhausted) > 0 {
		return nil, Throttled(c.Exhausted)
	}
	return out, nil
}

// BatchWriteItem implements the operation. If a transaction holds an item, the write of the item
// comes back unprocessed.
func (db *Database) BatchWriteItem(c *Cost, in *dynamodb.BatchWriteItemInput, f *Interference) (*dynamodb.BatchWriteItemOutput, error) {
	if len(in.RequestItems) == 0 {
		return nil, counted("requestItems", "{}", 0, maxBatchWrites)
	}
	asked := 0
	for name, requests := range in.RequestItems {
		if err := checkTableName(&name); err != nil {
			return nil, err
		}
		if len(requests) == 0 {
			return nil, counted("requestItems."+name+".member", "[]", 0, maxBatchWrites)
		}
		asked += len(requests)
	}
	if asked > maxBatchWrites {
		return nil, apierror.Validation("Too many items requested for the BatchWriteItem call")
	}
	type one struct {
		write
		table   string
		request types.WriteRequest
	}
	var writes []one
	for _, name := range slices.Sorted(maps.Keys(in.RequestItems)) {
		for _, request := range in.RequestItems[name] {
			w, err := parseRequest(request)
			if err != nil {
				return nil, err
			}
			writes = append(writes, one{w, name, request})
		}
	}
	seen := make(map[place]bool, asked)
	bytes := 0
	for i := range writes {
		w := &writes[i]
		t, err := db.table(&w.table)
		if err == nil {
			err = w.in(t)
		}
		if err == nil {
			err = w.unfit
		}
		if err != nil {
			return nil, err
		}
		if seen[place{w.t, w.at}] {
			return nil, apierror.Validation("Provided list of item keys contains duplicates")
		}
		seen[place{w.t, w.at}] = true
		bytes += value.ItemSize(w.item) + value.ItemSize(w.key)
	}
	if bytes > maxBatchBytes {
		return nil, apierror.Validation("Batch write request size exceeds the maximum of 16 MB")
	}

	out := &dynamodb.BatchWriteItemOutput{UnprocessedItems: map[string][]types.WriteRequest{}}
	processed := 0
	for i := range writes {
		w := &writes[i]
		if f.withholds(i) {
			out.UnprocessedItems[w.table] = append(out.UnprocessedItems[w.table], w.request)
			continue
		}
		_, _, err := db.perform(c, &w.write)
		switch err.(type) { //nolint:errorlint // made by perform
		case nil:
			processed++
		case *types.TransactionConflictException, *types.ProvisionedThroughputExceededException:
			out.UnprocessedItems[w.table] = append(out.UnprocessedItems[w.table], w.request)
			continue
		default:
			return nil, err
		}
		if m := metrics(&w.write, in.ReturnItemCollectionMetrics); m != nil {
			if out.ItemCollectionMetrics == nil {
				out.ItemCollectionMetrics = map[string][]types.ItemCollectionMetrics{}
			}
			out.ItemCollectionMetrics[w.table] = append(out.ItemCollectionMetrics[w.table], *m)
		}
	}
	if processed == 0 && len(c.Exhausted) > 0 {
		return nil, Throttled(c.Exhausted)
	}
	return out, nil
}

// parseRequest makes the requested write, without its table.
func parseRequest(request types.WriteRequest) (write, error) {
	a := expression.NewAttributes(nil, nil)
	switch {
	case (request.PutRequest == nil) == (request.DeleteRequest == nil):
		return write{}, apierror.Validation("Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes")
	case request.PutRequest != nil:
		return putting(request.PutRequest.Item, nil, a)
	}
	return onKey(deleteItem, request.DeleteRequest.Key, nil, nil, a)
}
