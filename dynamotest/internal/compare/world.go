package compare

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// World is a sequence of operations that starts without tables.
type World struct {
	Seed       uint64
	Operations []Operation

	// Big worlds have items that fill pages of 1 MB. The ends of such pages depend on unspecified
	// orders.
	Big bool
}

// NewWorld returns the world of a seed, with n operations after those that create its tables.
func NewWorld(seed uint64, n int) World {
	d := newDice(seed)
	g := &generator{dice: d, big: d.chance(40)}
	if g.big {
		n = min(n, 120) // each transfers megabytes
	}
	for i := range 2 + d.IntN(2) {
		t := g.newTable("table" + strconv.Itoa(i))
		g.tables = append(g.tables, t)
		g.add(t.create())
	}
	for range n {
		g.add(g.operation())
	}
	return World{Seed: seed, Operations: g.operations, Big: g.big}
}

// attribute is a key attribute. Its name is empty if there is none.
type attribute struct {
	name string
	kind types.ScalarAttributeType
}

type table struct {
	name       string
	hash, sort attribute
	indexes    []index
	pays       types.BillingMode
	gone       bool // deleted, as far as the generator knows
}

type index struct {
	name       string
	local      bool
	hash, sort attribute
	projection types.ProjectionType
	include    []string
	added      bool // added to an existing table
}

// indexable are attributes that usually have a type that is allowed for keys.
var indexable = []attribute{
	{"s1", types.ScalarAttributeTypeS},
	{"n1", types.ScalarAttributeTypeN},
	{"b1", types.ScalarAttributeTypeB},
	{"s2", types.ScalarAttributeTypeS},
	{"n2", types.ScalarAttributeTypeN},
}

func (g *generator) newTable(name string) *table {
	kind := func() types.ScalarAttributeType {
		return pick(g.dice, types.ScalarAttributeTypeS, types.ScalarAttributeTypeS, types.ScalarAttributeTypeN, types.ScalarAttributeTypeB)
	}
	t := &table{
		name: name,
		hash: attribute{pick(g.dice, "pkey", "id", "hash"), kind()},
		pays: pick(g.dice, types.BillingModePayPerRequest, types.BillingModePayPerRequest, types.BillingModeProvisioned),
	}
	if g.chance(700) {
		t.sort = attribute{pick(g.dice, "skey", "version", "range"), kind()}
	}
	for i := range g.IntN(3) {
		t.indexes = append(t.indexes, g.newGlobalIndex(t, "global"+strconv.Itoa(i)))
	}
	if t.sort.name != "" {
		for i := range g.IntN(3) {
			x := index{name: "local" + strconv.Itoa(i), local: true, hash: t.hash, sort: pick(g.dice, indexable...)}
			g.project(&x)
			t.indexes = append(t.indexes, x)
		}
	}
	return t
}

func (g *generator) newGlobalIndex(t *table, name string) index {
	keys := some(g.dice, 2, indexable)
	x := index{name: name, hash: keys[0]}
	if g.chance(600) {
		x.sort = keys[1]
	}
	if t.sort.name != "" && g.chance(200) {
		x.hash = t.sort
	}
	if x.sort.name != "" && g.chance(150) {
		x.sort = t.hash
	}
	g.project(&x)
	return x
}

func (g *generator) project(x *index) {
	x.projection = pick(g.dice, types.ProjectionTypeAll, types.ProjectionTypeKeysOnly, types.ProjectionTypeInclude)
	if x.projection == types.ProjectionTypeInclude {
		x.include = some(g.dice, 1+g.IntN(3), attributeNames)
	}
}

func (t *table) create() Operation {
	in := &dynamodb.CreateTableInput{
		TableName:             &t.name,
		BillingMode:           t.pays,
		ProvisionedThroughput: t.throughput(),
		KeySchema:             keySchema(t.hash, t.sort),
	}
	defined := []attribute{t.hash, t.sort}
	for _, x := range t.indexes {
		defined = append(defined, x.hash, x.sort)
		if x.local {
			in.LocalSecondaryIndexes = append(in.LocalSecondaryIndexes, types.LocalSecondaryIndex{
				IndexName: aws.String(x.name), KeySchema: keySchema(x.hash, x.sort), Projection: x.projected(),
			})
			continue
		}
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(x.name), KeySchema: keySchema(x.hash, x.sort), Projection: x.projected(),
			ProvisionedThroughput: t.throughput(),
		})
	}
	in.AttributeDefinitions = definitions(defined)
	return Operation{Input: in}
}

func (t *table) throughput() *types.ProvisionedThroughput {
	if t.pays != types.BillingModeProvisioned {
		return nil
	}
	return &types.ProvisionedThroughput{ReadCapacityUnits: aws.Int64(5), WriteCapacityUnits: aws.Int64(7)}
}

func (t *table) copy() *table {
	c := *t
	c.indexes = append([]index(nil), t.indexes...)
	return &c
}

// keys returns the attributes of the table's primary key.
func (t *table) keys() []attribute {
	if t.sort.name == "" {
		return []attribute{t.hash}
	}
	return []attribute{t.hash, t.sort}
}

// keys returns the attributes of the index key.
func (x index) keys() []attribute {
	if x.sort.name == "" {
		return []attribute{x.hash}
	}
	return []attribute{x.hash, x.sort}
}

func (x index) projected() *types.Projection {
	return &types.Projection{ProjectionType: x.projection, NonKeyAttributes: x.include}
}

func keySchema(hash, sort attribute) []types.KeySchemaElement {
	schema := []types.KeySchemaElement{{AttributeName: aws.String(hash.name), KeyType: types.KeyTypeHash}}
	if sort.name != "" {
		schema = append(schema, types.KeySchemaElement{AttributeName: aws.String(sort.name), KeyType: types.KeyTypeRange})
	}
	return schema
}

// definitions returns each attribute once.
func definitions(attributes []attribute) []types.AttributeDefinition {
	var out []types.AttributeDefinition
	seen := map[string]bool{"": true}
	for _, a := range attributes {
		if !seen[a.name] {
			out = append(out, types.AttributeDefinition{AttributeName: aws.String(a.name), AttributeType: a.kind})
		}
		seen[a.name] = true
	}
	return out
}
