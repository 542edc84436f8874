package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/tables"
	"github.com/millrace-dev/millrace/journal"
)

// Table describes a table of a read model whose keys are strings. Name and PartitionKey are
// required.
type Table struct {
	Name         string
	PartitionKey string // attribute
	// An attribute. Default: none, one item for each partition key.
	SortKey string
	// An attribute with the Unix time in seconds at which an item expires. Default: none.
	TimeToLive string
	// Global secondary indexes, for a [Reader]. Default: none.
	Indexes []Index
}

// Index describes a global secondary index of a [Table]. It holds only the items that have its key
// attributes. Name and PartitionKey are required.
//
// DynamoDB writes at most 1,000 units a second to one value of PartitionKey. If it throttles an
// index, it also throttles writes to the table. So do not use a constant, such as "all", in a table
// with many writes.
type Index struct {
	Name         string
	PartitionKey string // an attribute of type string
	// An attribute. Default: none, and the order of the items is undefined.
	SortKey string
	// The type of SortKey: S or N. Default: S, a string.
	SortType types.ScalarAttributeType
	// Attributes are those that the index holds besides its keys and those of the table. A change
	// of other attributes does not cost a write to the index. Default: all attributes. A list that
	// is empty and not nil means none. With a list, an index whose keys are all keys of the table
	// also shows the rows of [Rows] that hold only a position: a [Reader] cannot tell them apart.
	Attributes []string
}

// CreateTable creates a table with on-demand capacity if it does not exist, and waits until it and
// its indexes are active. If the table exists, CreateTable compares its keys and indexes and does
// not change them, so a program can call it at every start. Use the SDK for a table with keys of
// other types.
//
// Errors: [*ConfigError], [*IndexMissingError] if the table exists without an index,
// [*journal.DescriptorMismatchError] if it exists with other keys, another index of that name, or
// another attribute for the time to live, [journal.ErrAccess].
func CreateTable(ctx context.Context, client journal.Client, table Table) error {
	schema, err := TableSchema(table)
	if err != nil {
		return err
	}
	err = tables.Create(ctx, client, schema)
	var missing *dynamo.IndexMissingError
	if errors.As(err, &missing) {
		return table.indexMissing(missing.Index, err)
	}
	return err
}

// TableSchema describes the table that [CreateTable] makes. Errors: [*ConfigError].
func TableSchema(table Table) (journal.TableSchema, error) {
	if err := table.validate(); err != nil {
		return journal.TableSchema{}, err
	}
	input := &dynamodb.CreateTableInput{
		TableName: &table.Name, BillingMode: types.BillingModePayPerRequest,
		KeySchema: keySchema(table.PartitionKey, table.SortKey),
	}
	for _, attribute := range slices.Sorted(maps.Keys(table.keyTypes())) {
		input.AttributeDefinitions = append(input.AttributeDefinitions, definition(attribute, table.keyTypes()[attribute]))
	}
	for _, index := range table.Indexes {
		input.GlobalSecondaryIndexes = append(input.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: &index.Name, KeySchema: keySchema(index.PartitionKey, index.SortKey), Projection: index.projection(),
		})
	}
	return journal.TableSchema{Input: input, TimeToLive: table.TimeToLive}, nil
}

func (t Table) validate() error {
	if t.Name == "" || t.PartitionKey == "" {
		return &ConfigError{"a table needs a name and a partition key"}
	}
	names, keyTypes := map[string]bool{}, Table{PartitionKey: t.PartitionKey, SortKey: t.SortKey}.keyTypes()
	for _, index := range t.Indexes {
		what := fmt.Sprintf("index %q of table %q ", index.Name, t.Name)
		switch {
		case index.Name == "" || index.PartitionKey == "":
			return &ConfigError{fmt.Sprintf("an index of table %q needs a name and a partition key", t.Name)}
		case names[index.Name]:
			return &ConfigError{what + "is declared twice"}
		case slices.ContainsFunc(append([]string{index.PartitionKey, index.SortKey}, index.Attributes...), isReserved):
			return &ConfigError{fmt.Sprintf("%shas an attribute that begins with %q, which is reserved", what, checkpoint.RowAttributes)}
		case !slices.Contains([]types.ScalarAttributeType{"", types.ScalarAttributeTypeS, types.ScalarAttributeTypeN}, index.SortType):
			return &ConfigError{fmt.Sprintf("%shas the SortType %q: use S or N", what, index.SortType)}
		}
		names[index.Name] = true
		for attribute, is := range index.keyTypes() {
			if other, ok := keyTypes[attribute]; ok && other != is {
				return &ConfigError{fmt.Sprintf("%shas the key %q of type %s, which is a key of type %s elsewhere", what, attribute, is, other)}
			}
			keyTypes[attribute] = is
		}
	}
	return nil
}

// keyTypes returns the types of the key attributes of the table and of its indexes.
func (t Table) keyTypes() map[string]types.ScalarAttributeType {
	all := Index{PartitionKey: t.PartitionKey, SortKey: t.SortKey}.keyTypes()
	for _, index := range t.Indexes {
		for attribute, is := range index.keyTypes() {
			all[attribute] = is
		}
	}
	return all
}

func (i Index) keyTypes() map[string]types.ScalarAttributeType {
	all := map[string]types.ScalarAttributeType{i.PartitionKey: types.ScalarAttributeTypeS}
	switch {
	case i.SortKey == "":
	case i.SortType == "":
		all[i.SortKey] = types.ScalarAttributeTypeS
	default:
		all[i.SortKey] = i.SortType
	}
	return all
}

func (i Index) projection() *types.Projection {
	switch {
	case i.Attributes == nil:
		return &types.Projection{ProjectionType: types.ProjectionTypeAll}
	case len(i.Attributes) == 0:
		return &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly}
	}
	return &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: i.Attributes}
}

func (t Table) index(name string) (Index, bool) {
	i := slices.IndexFunc(t.Indexes, func(index Index) bool { return index.Name == name })
	if i < 0 {
		return Index{}, false
	}
	return t.Indexes[i], true
}

// indexMissing returns the error for an index of t that the table in DynamoDB lacks.
func (t Table) indexMissing(name string, err error) error {
	index, _ := t.index(name)
	add := &dynamodb.UpdateTableInput{TableName: &t.Name, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{
		Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: &index.Name, KeySchema: keySchema(index.PartitionKey, index.SortKey), Projection: index.projection(),
		},
	}}}
	for _, attribute := range slices.Sorted(maps.Keys(index.keyTypes())) {
		add.AttributeDefinitions = append(add.AttributeDefinitions, definition(attribute, index.keyTypes()[attribute]))
	}
	return &IndexMissingError{Table: t.Name, Index: name, Add: add, Err: err}
}

func keySchema(partition, sort string) []types.KeySchemaElement {
	keys := []types.KeySchemaElement{{AttributeName: &partition, KeyType: types.KeyTypeHash}}
	if sort != "" {
		keys = append(keys, types.KeySchemaElement{AttributeName: &sort, KeyType: types.KeyTypeRange})
	}
	return keys
}

func definition(attribute string, is types.ScalarAttributeType) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: aws.String(attribute), AttributeType: is}
}

// Key returns the key of an item, as requests of the SDK take it. Sort is the value of the sort
// key, if the table has one.
func (t Table) Key(partition string, sort ...string) map[string]types.AttributeValue {
	key := map[string]types.AttributeValue{t.PartitionKey: Text(partition)}
	if t.SortKey != "" && len(sort) > 0 {
		key[t.SortKey] = Text(sort[0])
	}
	return key
}
