package compare

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (g *generator) tableOperation() Operation {
	t := g.anyTable()
	switch weighted(g.dice, 25, 14, 12, 8, 14, 12, 15) {
	case 0:
		return Operation{Input: &dynamodb.DescribeTableInput{TableName: &t.name}}
	case 1:
		return g.updateTable(t)
	case 2:
		return g.createTable(t)
	case 3:
		if g.living() > 1 {
			t.gone = true
			return Operation{Input: &dynamodb.DeleteTableInput{TableName: &t.name}}
		}
		return Operation{Input: &dynamodb.DeleteTableInput{TableName: aws.String("absent")}}
	case 4:
		in := &dynamodb.ListTablesInput{Limit: pick(g.dice, nil, nil, aws.Int32(1), aws.Int32(2), aws.Int32(100), aws.Int32(0), aws.Int32(101))}
		in.ExclusiveStartTableName = pick(g.dice, nil, nil, aws.String("table0"), aws.String("table00"), aws.String("x"), aws.String("zzz"))
		return Operation{Input: in}
	case 5:
		return Operation{Input: &dynamodb.DescribeTimeToLiveInput{TableName: &t.name}}
	}
	// No item has a time in this attribute, so nothing expires during a comparison.
	return Operation{Input: &dynamodb.UpdateTimeToLiveInput{
		TableName: &t.name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(pick(g.dice, "expires", "expires", "expires", "until", "")), Enabled: aws.Bool(g.chance(600)),
		},
	}}
}

func (g *generator) living() int {
	n := 0
	for _, t := range g.tables {
		if !t.gone {
			n++
		}
	}
	return n
}

// createTable creates a table that was deleted. Otherwise it fails, because the table exists or
// because of a mistake in the request.
func (g *generator) createTable(t *table) Operation {
	if t.gone {
		t.gone = false
		t.indexes = []index{g.newGlobalIndex(t, "global0")}
		return t.create()
	}
	if g.chance(150) {
		return t.create() // it exists
	}
	o := g.newTable("other").create()
	in := o.Input.(*dynamodb.CreateTableInput)
	switch g.IntN(14) {
	case 0:
		in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String("unused"), AttributeType: "S"})
	case 1:
		in.AttributeDefinitions = in.AttributeDefinitions[1:]
	case 2:
		in.KeySchema = append(in.KeySchema, in.KeySchema[0])
	case 3:
		in.KeySchema[0].KeyType = types.KeyTypeRange
	case 4:
		in.AttributeDefinitions[0].AttributeType = "BOOL"
	case 5:
		in.BillingMode, in.ProvisionedThroughput = types.BillingModePayPerRequest, &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(1), WriteCapacityUnits: aws.Int64(1)}
	case 6:
		in.BillingMode, in.ProvisionedThroughput = types.BillingModeProvisioned, nil
	case 7:
		in.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{}
	case 8:
		in.TableName = aws.String(pick(g.dice, "ab", "a b c", "ünicode", ""))
	case 9:
		in.KeySchema = []types.KeySchemaElement{}
	case 10:
		in.AttributeDefinitions = append(in.AttributeDefinitions, in.AttributeDefinitions[0])
	case 11:
		x := g.newGlobalIndex(g.tables[0], pick(g.dice, "same", "x"))
		x.hash, x.sort = attribute{*in.KeySchema[0].AttributeName, "S"}, attribute{}
		for range 2 {
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
				IndexName: aws.String(x.name), KeySchema: keySchema(x.hash, x.sort), Projection: x.projected(),
			})
		}
	case 12:
		for i := range in.LocalSecondaryIndexes {
			in.LocalSecondaryIndexes[i].KeySchema = in.LocalSecondaryIndexes[i].KeySchema[:1]
		}
		for i := range in.GlobalSecondaryIndexes {
			in.GlobalSecondaryIndexes[i].Projection = &types.Projection{ProjectionType: types.ProjectionTypeInclude}
		}
	case 13:
		for i := range in.GlobalSecondaryIndexes {
			in.GlobalSecondaryIndexes[i].Projection = &types.Projection{ProjectionType: types.ProjectionTypeAll, NonKeyAttributes: []string{"s1"}}
		}
		for i := range in.LocalSecondaryIndexes {
			in.LocalSecondaryIndexes[i].KeySchema[0].AttributeName = aws.String("s1")
		}
	}
	return o
}

// updateTable adds or removes an index, changes the billing mode, or makes an invalid request.
func (g *generator) updateTable(t *table) Operation {
	in := &dynamodb.UpdateTableInput{TableName: &t.name}
	switch weighted(g.dice, 30, 20, 15, 15, 10, 10) {
	case 0:
		x := g.newGlobalIndex(t, "global"+strconv.Itoa(g.IntN(4)))
		if !g.chance(150) {
			// DynamoDB Local hangs at an item whose attribute cannot be a key of the new index.
			x.hash, x.sort = t.hash, attribute{}
			if t.sort.name != "" {
				x.hash, x.sort = t.sort, pick(g.dice, attribute{}, t.hash)
			}
		}
		x.added = true
		known := false
		for _, other := range t.indexes {
			known = known || other.name == x.name
		}
		if !known {
			t.indexes = append(t.indexes, x)
		}
		in.AttributeDefinitions = definitions(append(t.keys(), x.keys()...))
		if g.chance(50) {
			in.AttributeDefinitions = in.AttributeDefinitions[:1]
		}
		in.GlobalSecondaryIndexUpdates = []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: aws.String(x.name), KeySchema: keySchema(x.hash, x.sort), Projection: x.projected(), ProvisionedThroughput: t.throughput(),
		}}}
	case 1:
		name := "global" + strconv.Itoa(g.IntN(3))
		for i, x := range t.indexes {
			if x.name == name {
				if x.added { // DynamoDB Local takes very long to remove it
					return g.updateTable(t)
				}
				t.indexes = append(t.indexes[:i:i], t.indexes[i+1:]...)
				break
			}
		}
		in.GlobalSecondaryIndexUpdates = []types.GlobalSecondaryIndexUpdate{{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: &name}}}
	case 2:
		t.pays = types.BillingModePayPerRequest
		in.BillingMode = t.pays
	case 3:
		t.pays = types.BillingModeProvisioned
		in.BillingMode = t.pays
		in.ProvisionedThroughput = &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(int64(1 + g.IntN(9))), WriteCapacityUnits: aws.Int64(9)}
	case 4:
		in.ProvisionedThroughput = t.throughput()
	case 5:
		in.DeletionProtectionEnabled = aws.Bool(false)
	}
	return Operation{Input: in}
}
