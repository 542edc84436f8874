package compare

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// generator makes the random operations of a world. It knows which tables its operations should
// have created, but not whether they succeeded.
type generator struct {
	dice
	big        bool
	tables     []*table
	operations []Operation

	transactions []*dynamodb.TransactWriteItemsInput // transactions with a token
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

// anyTable returns a table that should exist, or rarely another one or one with a wrong schema.
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
	// Without an update expression, the item is created if it is missing.
	if !g.chance(20) {
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

// maybeCondition returns a condition with a probability in thousandths, and what to return if it
// fails.
func (e *expression) maybeCondition(perMille int) (condition *string, onFailure types.ReturnValuesOnConditionCheckFailure) {
	onFailure = pick(e.dice, "", types.ReturnValuesOnConditionCheckFailureNone, types.ReturnValuesOnConditionCheckFailureAllOld)
	// Without an item, DynamoDB Local creates one for an update that only removes, and AWS does
	// not. The package conformance tests that.
	if e.removes {
		return e.finish("attribute_exists(" + e.name(e.table.keys()[0].name) + ")"), onFailure
	}
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
	// The order of index items with the same key is unspecified. So a start key could mean a
	// different place on each side.
	if g.chance(60) && x.name == "" || g.chance(10) {
		in.ExclusiveStartKey = g.key(t)
		if x.name != "" && in.KeyConditionExpression != nil {
			delete(in.ExclusiveStartKey, t.hash.name) // wrong for every index
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

// sortOfIndex returns the sort key of an index, and an empty name for the table itself.
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

// selection returns a Select that fits the projection, and rarely one that does not.
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
		// A complete key would start at a different place on each side.
		delete(in.ExclusiveStartKey, t.hash.name)
		in.ExclusiveStartKey["extra"] = g.value("S", 0)
	}
	return o
}
