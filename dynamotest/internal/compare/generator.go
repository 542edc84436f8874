package compare

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// generator draws the operations of a world. It knows which tables its operations should have made,
// but not what became of them.
type generator struct {
	dice
	big        bool
	tables     []*table
	operations []Operation

	transactions []*dynamodb.TransactWriteItemsInput // those with a token
}

func (g *generator) add(o Operation) { g.operations = append(g.operations, o) }

func (g *generator) operation() Operation {
	switch weighted(g.dice, 170, 210, 60, 50, 110, 50, 190, 70, 40, 40, 25) {
	case 0:
		return Operation{Input: g.put(g.anyTable())}
	case 1:
		return Operation{Input: g.update(g.anyTable())}
	case 2:
		return Operation{Input: g.delete(g.anyTable())}
	case 3:
		return Operation{Input: g.batchWrite()}
	case 4:
		return Operation{Input: g.transactWrite()}
	case 5:
		return Operation{Input: g.get(g.anyTable())}
	case 6:
		return g.query(g.anyTable())
	case 7:
		return g.scan(g.anyTable())
	case 8:
		return Operation{Input: g.batchGet()}
	case 9:
		return Operation{Input: g.transactGet()}
	}
	return g.tableOperation()
}

// anyTable returns a table that should be there, rarely another or one that knows its schema wrong.
func (g *generator) anyTable() *table {
	t := pick(g.dice, g.tables...)
	for range 3 {
		if t.gone {
			t = pick(g.dice, g.tables...)
		}
	}
	if g.chance(4) {
		t = t.copy()
		t.name = pick(g.dice, "absent", "a", "wrong name", "")
	}
	return t
}

func (g *generator) put(t *table) *dynamodb.PutItemInput {
	e := g.expression(t)
	in := &dynamodb.PutItemInput{
		TableName:                   &t.name,
		Item:                        g.item(t),
		ReturnValues:                pick(g.dice, "", "", types.ReturnValueNone, types.ReturnValueAllOld, types.ReturnValueAllOld),
		ReturnConsumedCapacity:      g.capacity(),
		ReturnItemCollectionMetrics: g.metrics(),
	}
	if g.chance(8) {
		in.ReturnValues = pick(g.dice, types.ReturnValueAllNew, types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew, "all_old")
	}
	in.ConditionExpression, in.ReturnValuesOnConditionCheckFailure = e.maybeCondition(300)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	return in
}

func (g *generator) update(t *table) *dynamodb.UpdateItemInput {
	e := g.expression(t)
	in := &dynamodb.UpdateItemInput{
		TableName: &t.name,
		Key:       g.key(t),
		ReturnValues: pick(g.dice, "", types.ReturnValueNone, types.ReturnValueAllOld, types.ReturnValueAllNew, types.ReturnValueAllNew,
			types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew),
		ReturnConsumedCapacity:      g.capacity(),
		ReturnItemCollectionMetrics: g.metrics(),
	}
	if !g.chance(20) { // without one the item is made if it is not there
		in.UpdateExpression = e.finish(e.update())
	}
	in.ConditionExpression, in.ReturnValuesOnConditionCheckFailure = e.maybeCondition(250)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	return in
}

func (g *generator) delete(t *table) *dynamodb.DeleteItemInput {
	e := g.expression(t)
	in := &dynamodb.DeleteItemInput{
		TableName:                   &t.name,
		Key:                         g.key(t),
		ReturnValues:                pick(g.dice, "", types.ReturnValueNone, types.ReturnValueAllOld, types.ReturnValueAllOld),
		ReturnConsumedCapacity:      g.capacity(),
		ReturnItemCollectionMetrics: g.metrics(),
	}
	if g.chance(8) {
		in.ReturnValues = pick(g.dice, types.ReturnValueAllNew, types.ReturnValueUpdatedOld, types.ReturnValueUpdatedNew)
	}
	in.ConditionExpression, in.ReturnValuesOnConditionCheckFailure = e.maybeCondition(400)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	return in
}

// maybeCondition returns a condition for so many in a thousand, and what to return when it fails.
func (e *expression) maybeCondition(perMille int) (condition *string, onFailure types.ReturnValuesOnConditionCheckFailure) {
	onFailure = pick(e.dice, "", types.ReturnValuesOnConditionCheckFailureNone, types.ReturnValuesOnConditionCheckFailureAllOld)
	if !e.chance(perMille) {
		return nil, onFailure
	}
	return e.finish(e.condition(2)), onFailure
}

func (g *generator) capacity() types.ReturnConsumedCapacity {
	return pick(g.dice, "", "", types.ReturnConsumedCapacityTotal, types.ReturnConsumedCapacityIndexes)
}

func (g *generator) metrics() types.ReturnItemCollectionMetrics {
	if g.chance(50) {
		return types.ReturnItemCollectionMetricsSize
	}
	return ""
}

func (g *generator) get(t *table) *dynamodb.GetItemInput {
	e := g.expression(t)
	in := &dynamodb.GetItemInput{TableName: &t.name, Key: g.key(t), ReturnConsumedCapacity: g.capacity(), ConsistentRead: g.maybeTrue(500)}
	in.ProjectionExpression = e.maybeProjection(400)
	in.ExpressionAttributeNames = e.names
	return in
}

func (e *expression) maybeProjection(perMille int) *string {
	if !e.chance(perMille) {
		return nil
	}
	return e.finish(e.projection())
}

func (g *generator) maybeTrue(perMille int) *bool {
	if g.chance(perMille) {
		return aws.Bool(true)
	}
	return pick(g.dice, nil, aws.Bool(false))
}

// query returns a query of the table or of one of its indexes.
func (g *generator) query(t *table) Operation {
	e := g.expression(t)
	in := &dynamodb.QueryInput{
		TableName:              &t.name,
		ScanIndexForward:       pick(g.dice, nil, aws.Bool(true), aws.Bool(false)),
		ReturnConsumedCapacity: g.capacity(),
	}
	x := g.anyIndex(t)
	in.IndexName, in.Limit = x.nameOrNil(), g.limit()
	if x.name == "" || x.local || g.chance(20) {
		in.ConsistentRead = g.maybeTrue(300)
	}
	in.KeyConditionExpression = e.finish(e.keyCondition(x.keys()))
	if g.chance(3) {
		in.KeyConditionExpression = nil
	}
	if g.chance(300) {
		in.FilterExpression = e.finish(e.condition(2))
	}
	in.ProjectionExpression = e.maybeProjection(250)
	in.Select = g.selection(in.ProjectionExpression, x)
	// In an index the order of items that share a key is open, so that a key to start from would
	// mean one thing here and another there.
	if g.chance(60) && x.name == "" || g.chance(10) {
		in.ExclusiveStartKey = g.key(t)
		if x.name != "" && in.KeyConditionExpression != nil {
			delete(in.ExclusiveStartKey, t.hash.name) // wrong for any index
		}
	}
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	return Operation{Input: in, Sort: x.sortOfIndex()}
}

// anyIndex returns an index of the table, or the table itself as an index without a name.
func (g *generator) anyIndex(t *table) index {
	switch {
	case g.chance(4):
		return index{name: pick(g.dice, "absent", "x", ""), hash: t.hash, sort: t.sort}
	case len(t.indexes) > 0 && g.chance(550):
		return pick(g.dice, t.indexes...)
	}
	return index{hash: t.hash, sort: t.sort}
}

func (x index) nameOrNil() *string {
	if x.name == "" {
		return nil
	}
	return &x.name
}

// sortOfIndex names what orders the items of an index, which is not what orders the table's.
func (x index) sortOfIndex() string {
	if x.name == "" {
		return ""
	}
	return x.sort.name
}

func (g *generator) limit() *int32 {
	switch {
	case g.chance(4):
		return aws.Int32(pick(g.dice, int32(0), -1))
	case g.chance(400):
		return aws.Int32(int32(1 + g.IntN(5)))
	}
	return nil
}

// selection returns a Select that goes with the projection, rarely one that does not.
func (g *generator) selection(projection *string, x index) types.Select {
	switch {
	case g.chance(15):
		return pick(g.dice, append(types.Select("").Values(), "EVERYTHING")...)
	case projection != nil:
		return pick(g.dice, "", types.SelectSpecificAttributes)
	case x.name == "":
		return pick(g.dice, "", "", types.SelectCount, types.SelectAllAttributes)
	case x.local || x.projection == types.ProjectionTypeAll:
		return pick(g.dice, "", "", types.SelectCount, types.SelectAllAttributes, types.SelectAllProjectedAttributes)
	}
	return pick(g.dice, "", "", types.SelectCount, types.SelectAllProjectedAttributes)
}

func (g *generator) scan(t *table) Operation {
	e := g.expression(t)
	in := &dynamodb.ScanInput{TableName: &t.name, ReturnConsumedCapacity: g.capacity()}
	x := g.anyIndex(t)
	in.IndexName, in.Limit = x.nameOrNil(), g.limit()
	if x.name == "" || x.local || g.chance(20) {
		in.ConsistentRead = g.maybeTrue(300)
	}
	if g.chance(400) {
		in.FilterExpression = e.finish(e.condition(2))
	}
	in.ProjectionExpression = e.maybeProjection(250)
	in.Select = g.selection(in.ProjectionExpression, x)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	o := Operation{Input: in}
	switch {
	case g.chance(200):
		o.Segments = 1 + g.IntN(4)
	case g.chance(30):
		wrong := [][2]*int32{
			{aws.Int32(2), aws.Int32(2)},
			{aws.Int32(0), nil},
			{nil, aws.Int32(3)},
			{aws.Int32(-1), aws.Int32(2)},
			{aws.Int32(0), aws.Int32(0)},
			{aws.Int32(0), aws.Int32(1_000_001)},
			{aws.Int32(5), aws.Int32(2)},
		}[g.IntN(7)]
		in.Segment, in.TotalSegments = wrong[0], wrong[1]
	case g.chance(15):
		in.ExclusiveStartKey = g.key(t)
		delete(in.ExclusiveStartKey, t.hash.name) // a whole key would start at another place on each side
		in.ExclusiveStartKey["extra"] = g.value("S", 0)
	}
	return o
}

// distinct returns n keys or items of tables, rarely with a repetition, as draw returns them.
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
		n = pick(g.dice, 0, 60, 101) // of which most are the same keys
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
	for _, name := range names { // in order, unlike the map
		e := g.expression(g.named(name))
		request := in.RequestItems[name]
		request.ConsistentRead = g.maybeTrue(300)
		request.ProjectionExpression = e.maybeProjection(300)
		request.ExpressionAttributeNames = e.names
		in.RequestItems[name] = request
	}
	return in
}

// named returns the table of that name, or another if there is none.
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

// isBareKey is true of items with no more attributes than a key has.
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

// repeated returns an earlier transaction with its token, either the same or another under that
// token.
func (g *generator) repeated() *dynamodb.TransactWriteItemsInput {
	again := *pick(g.dice, g.transactions...)
	switch g.IntN(4) {
	case 0:
		other := g.distinct(1, g.key)[0]
		again.TransactItems = []types.TransactWriteItem{g.action(g.named(other.table), other)}
	case 1:
		again.ReturnConsumedCapacity = g.capacity() // which DynamoDB allows to differ
	}
	return &again
}

// action returns what a transaction does with a key.
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
		if g.chance(600) { // a random condition alone would make most transactions fail
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
