package engine

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Largest number of indexes of a table, and of attributes that all of them project by name.
// Source: Developer Guide, "Quotas in Amazon DynamoDB", secondary indexes.
const (
	maxGlobalIndexes    = 20
	maxLocalIndexes     = 5
	maxNonKeyAttributes = 100
)

// maxKeyElements is the largest number of elements in the key of a global index, maxSimpleKey in
// the key of a table.
const (
	maxKeyElements = 8
	maxSimpleKey   = 2
)

// indexSpec is an index in the form of a request.
type indexSpec struct {
	global     bool
	name       *string
	key        []types.KeySchemaElement
	projection *types.Projection
	throughput *types.ProvisionedThroughput
	onDemand   *types.OnDemandThroughput
	warm       *types.WarmThroughput
}

func globalSpec(ix types.GlobalSecondaryIndex) indexSpec {
	return indexSpec{
		global: true, name: ix.IndexName, key: ix.KeySchema, projection: ix.Projection,
		throughput: ix.ProvisionedThroughput, onDemand: ix.OnDemandThroughput, warm: ix.WarmThroughput,
	}
}

func localSpec(ix types.LocalSecondaryIndex) indexSpec {
	return indexSpec{name: ix.IndexName, key: ix.KeySchema, projection: ix.Projection}
}

func (c *constraints) index(at string, spec indexSpec) {
	most := maxSimpleKey
	if spec.global {
		most = maxKeyElements
	}
	c.name(at+".indexName", spec.name)
	c.key(at+".keySchema", spec.key, most)
	c.projection(at+".projection", spec.projection)
	c.throughput(at+".provisionedThroughput", spec.throughput)
}

func (c *constraints) projection(at string, p *types.Projection) {
	if !c.required(at, p != nil) {
		return
	}
	oneOf(c, at+".projectionType", p.ProjectionType, types.ProjectionTypeAll, types.ProjectionTypeInclude, types.ProjectionTypeKeysOnly)
	if p.NonKeyAttributes == nil {
		return
	}
	if len(p.NonKeyAttributes) == 0 {
		c.refuse(at+".nonKeyAttributes", "'[]'", "have length greater than or equal to 1")
	}
	for i, name := range p.NonKeyAttributes {
		c.text(element(at+".nonKeyAttributes", i), &name, 1)
	}
}

// unsupported returns an error for parameters of this index that the emulator does not support.
func (spec indexSpec) unsupported() error {
	if spec.warm != nil {
		return unsupported("WarmThroughput")
	}
	second := slices.ContainsFunc(spec.key[1:], func(e types.KeySchemaElement) bool { return e.KeyType == types.KeyTypeHash })
	if spec.global && (len(spec.key) > maxSimpleKey || second && spec.key[0].KeyType == types.KeyTypeHash) {
		return unsupported("keys of several attributes: index " + *spec.name)
	}
	return nil
}

// parse makes an index without rows. The request must satisfy the constraints.
func (spec indexSpec) parse(table keySchema, definitions []types.AttributeDefinition, billing types.BillingMode) (*index, error) {
	if err := spec.unsupported(); err != nil {
		return nil, err
	}
	key, err := parseKey(spec.key, definitions)
	if err != nil {
		return nil, err
	}
	name := strings.Clone(*spec.name)
	if !spec.global {
		if key.sort.name == "" {
			return nil, invalid("Index KeySchema does not have a range key for index: %s", name)
		}
		if key.partition.name != table.partition.name {
			return nil, invalid("Index KeySchema does not have the same leading hash key as table KeySchema for index: %s. "+
				"index hash key: %s, table hash key: %s", name, key.partition.name, table.partition.name)
		}
	}
	projection, err := indexProjection(spec.projection)
	if err != nil {
		return nil, err
	}
	ix := &index{name: name, global: spec.global, key: key, projection: projection}
	if spec.global {
		if err := checkIndexThroughput(name, billing, spec.throughput, spec.onDemand); err != nil {
			return nil, err
		}
		ix.settings = indexSettings{throughput: copyOfThroughput(spec.throughput), onDemand: copyOfOnDemand(spec.onDemand)}
	}
	return ix, nil
}

func indexProjection(p *types.Projection) (types.Projection, error) {
	switch {
	case p.ProjectionType == "":
		return types.Projection{}, invalid("Unknown ProjectionType: null")
	case p.ProjectionType == types.ProjectionTypeInclude && p.NonKeyAttributes == nil:
		return types.Projection{}, invalid("ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
	case p.ProjectionType != types.ProjectionTypeInclude && p.NonKeyAttributes != nil:
		return types.Projection{}, invalid("ProjectionType is %s, but NonKeyAttributes is specified", p.ProjectionType)
	case hasTwice(p.NonKeyAttributes):
		return types.Projection{}, attributeTwice()
	}
	return copyOfProjection(*p), nil
}

func copyOfProjection(p types.Projection) types.Projection {
	return types.Projection{ProjectionType: p.ProjectionType, NonKeyAttributes: slices.Clone(p.NonKeyAttributes)}
}

// checkIndexes checks all indexes of a table together.
func checkIndexes(indexes []*index) error {
	global, local, projected := 0, 0, 0
	names := make(map[string]bool, len(indexes))
	for _, ix := range indexes {
		if names[ix.name] {
			return invalid("Duplicate index name: %s", ix.name)
		}
		names[ix.name] = true
		projected += len(ix.projection.NonKeyAttributes)
		if ix.global {
			global++
		} else {
			local++
		}
	}
	switch {
	case local > maxLocalIndexes:
		return invalid("Number of LocalSecondaryIndexes exceeds per-table limit of %d", maxLocalIndexes)
	case global > maxGlobalIndexes:
		return invalid("GlobalSecondaryIndex count exceeds the per-table limit of %d", maxGlobalIndexes)
	case projected > maxNonKeyAttributes:
		return invalid("Number of NonKeyAttributes of all indexes exceeds the per-table limit of %d", maxNonKeyAttributes)
	}
	return nil
}

func elementsOf(key keySchema) []types.KeySchemaElement {
	elements := []types.KeySchemaElement{{AttributeName: aws.String(key.partition.name), KeyType: types.KeyTypeHash}}
	if key.sort.name != "" {
		elements = append(elements, types.KeySchemaElement{AttributeName: aws.String(key.sort.name), KeyType: types.KeyTypeRange})
	}
	return elements
}
