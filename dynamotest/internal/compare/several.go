package compare

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// distinct returns n keys or items of tables, as draw returns them, rarely with a repetition.
func (g *generator) distinct(n int, draw func(t *table) item) []touched {
	var out []touched
	seen := map[string]bool{}
	repeat := g.chance(30)
	for range 20 * n {
		if len(out) == n {
			break
		}
		t := g.anyTable()
		key := draw(t)
		text := t.name
		for _, a := range t.keys() {
			text += "/" + canonicalKey(key[a.name])
		}
		if seen[text] && !repeat {
			continue
		}
		seen[text] = true
		out = append(out, touched{t.name, key})
	}
	return out
}

func (g *generator) batchGet() *dynamodb.BatchGetItemInput {
	in := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{}, ReturnConsumedCapacity: g.capacity()}
	n := 1 + g.IntN(6)
	if g.chance(15) {
		n = pick(g.dice, 0, 60, 101) // most of them are the same keys
	}
	keys := g.distinct(n, g.key)
	for len(keys) < n {
		keys = append(keys, keys[0])
	}
	names := []string{}
	for _, k := range keys {
		request, ok := in.RequestItems[k.table]
		if !ok {
			names = append(names, k.table)
		}
		request.Keys = append(request.Keys, k.key)
		in.RequestItems[k.table] = request
	}
	for _, name := range names { // in a fixed order, unlike the map
		e := g.expression(g.named(name))
		request := in.RequestItems[name]
		request.ConsistentRead = g.maybeTrue(300)
		request.ProjectionExpression = e.maybeProjection(300)
		request.ExpressionAttributeNames = e.names
		in.RequestItems[name] = request
	}
	return in
}

// named returns the table with that name, or another one if there is none.
func (g *generator) named(name string) *table {
	for _, t := range g.tables {
		if t.name == name {
			return t
		}
	}
	return g.tables[0]
}

func (g *generator) batchWrite() *dynamodb.BatchWriteItemInput {
	in := &dynamodb.BatchWriteItemInput{
		RequestItems: map[string][]types.WriteRequest{}, ReturnConsumedCapacity: g.capacity(), ReturnItemCollectionMetrics: g.metrics(),
	}
	n := 1 + g.IntN(6)
	if g.chance(15) {
		n = pick(g.dice, 0, 26)
	}
	puts := 0
	for _, k := range g.distinct(n, func(t *table) item {
		if puts++; puts%3 == 0 {
			return g.key(t)
		}
		return g.item(t)
	}) {
		request := types.WriteRequest{PutRequest: &types.PutRequest{Item: k.key}}
		if isBareKey(g.named(k.table), k.key) {
			request = types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: k.key}}
		}
		switch weighted(g.dice, 996, 2, 2) {
		case 1:
			request = types.WriteRequest{}
		case 2:
			request.PutRequest, request.DeleteRequest = &types.PutRequest{Item: k.key}, &types.DeleteRequest{Key: k.key}
		}
		in.RequestItems[k.table] = append(in.RequestItems[k.table], request)
	}
	return in
}

// isBareKey reports whether an item has no more attributes than a key.
func isBareKey(t *table, i item) bool { return len(i) <= len(t.keys()) }

func (g *generator) transactGet() *dynamodb.TransactGetItemsInput {
	in := &dynamodb.TransactGetItemsInput{ReturnConsumedCapacity: g.capacity(), TransactItems: []types.TransactGetItem{}}
	n := 1 + g.IntN(5)
	if g.chance(15) {
		n = pick(g.dice, 0, 101)
	}
	keys := g.distinct(n, g.key)
	for len(keys) < n {
		keys = append(keys, keys[0])
	}
	for _, k := range keys {
		e := g.expression(g.named(k.table))
		get := &types.Get{TableName: aws.String(k.table), Key: k.key, ProjectionExpression: e.maybeProjection(250)}
		get.ExpressionAttributeNames = e.names
		in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: get})
	}
	return in
}

func (g *generator) transactWrite() *dynamodb.TransactWriteItemsInput {
	if len(g.transactions) > 0 && g.chance(60) {
		return g.repeated()
	}
	in := &dynamodb.TransactWriteItemsInput{
		ReturnConsumedCapacity: g.capacity(), ReturnItemCollectionMetrics: g.metrics(), TransactItems: []types.TransactWriteItem{},
	}
	n := 1 + g.IntN(5)
	if g.chance(10) {
		n = pick(g.dice, 0, 101)
	}
	keys := g.distinct(n, g.key)
	for len(keys) < n {
		keys = append(keys, keys[0])
	}
	for _, k := range keys {
		in.TransactItems = append(in.TransactItems, g.action(g.named(k.table), k))
	}
	if g.chance(150) {
		in.ClientRequestToken = aws.String(strconv.Itoa(len(g.transactions)))
		g.transactions = append(g.transactions, in)
	}
	return in
}

// repeated returns an earlier transaction with its token, either the same one or another one with
// that token.
func (g *generator) repeated() *dynamodb.TransactWriteItemsInput {
	again := *pick(g.dice, g.transactions...)
	switch g.IntN(4) {
	case 0:
		other := g.distinct(1, g.key)[0]
		again.TransactItems = []types.TransactWriteItem{g.action(g.named(other.table), other)}
	case 1:
		again.ReturnConsumedCapacity = g.capacity() // DynamoDB allows it to differ
	}
	return &again
}

// action returns an action of a transaction on a key.
func (g *generator) action(t *table, k touched) types.TransactWriteItem {
	e := g.expression(t)
	var out types.TransactWriteItem
	switch weighted(g.dice, 35, 35, 15, 15) {
	case 0:
		put := &types.Put{TableName: aws.String(k.table), Item: g.item(t)}
		for _, a := range t.keys() {
			delete(put.Item, a.name)
		}
		for name, v := range k.key {
			put.Item[name] = v
		}
		put.ConditionExpression, put.ReturnValuesOnConditionCheckFailure = e.maybeCondition(200)
		put.ExpressionAttributeNames, put.ExpressionAttributeValues = e.names, e.values
		out.Put = put
	case 1:
		update := &types.Update{TableName: aws.String(k.table), Key: k.key}
		update.UpdateExpression = e.finish(e.update())
		update.ConditionExpression, update.ReturnValuesOnConditionCheckFailure = e.maybeCondition(150)
		update.ExpressionAttributeNames, update.ExpressionAttributeValues = e.names, e.values
		out.Update = update
	case 2:
		remove := &types.Delete{TableName: aws.String(k.table), Key: k.key}
		remove.ConditionExpression, remove.ReturnValuesOnConditionCheckFailure = e.maybeCondition(200)
		remove.ExpressionAttributeNames, remove.ExpressionAttributeValues = e.names, e.values
		out.Delete = remove
	case 3:
		check := &types.ConditionCheck{TableName: aws.String(k.table), Key: k.key}
		check.ConditionExpression, check.ReturnValuesOnConditionCheckFailure = e.maybeCondition(1000)
		// With random conditions only, most transactions would fail.
		if g.chance(600) {
			e = g.expression(t)
			check.ConditionExpression = e.finish("attribute_not_exists(" + e.name("absent") + ")")
		}
		check.ExpressionAttributeNames, check.ExpressionAttributeValues = e.names, e.values
		out.ConditionCheck = check
	}
	switch weighted(g.dice, 996, 2, 2) {
	case 1:
		return types.TransactWriteItem{}
	case 2:
		out.Delete = &types.Delete{TableName: aws.String(k.table), Key: k.key}
	}
	return out
}
