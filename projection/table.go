package projection

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

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
}

// CreateTable creates a table with on-demand capacity if it does not exist, and waits until it is
// active. If the table exists, CreateTable compares its keys and does not change them, so a program
// can call it at every start. Use the SDK for a table with indexes or with keys of other types.
//
// Errors: [*ConfigError], [*journal.DescriptorMismatchError] if the table exists with other keys or
// another attribute for the time to live, [journal.ErrAccess].
func CreateTable(ctx context.Context, client journal.Client, table Table) error {
	if table.Name == "" || table.PartitionKey == "" {
		return &ConfigError{Reason: "a table needs a name and a partition key"}
	}
	input := &dynamodb.CreateTableInput{TableName: &table.Name, BillingMode: types.BillingModePayPerRequest}
	addKey(input, table.PartitionKey, types.KeyTypeHash)
	if table.SortKey != "" {
		addKey(input, table.SortKey, types.KeyTypeRange)
	}
	return tables.Create(ctx, client, journal.TableSchema{Input: input, TimeToLive: table.TimeToLive})
}

func addKey(input *dynamodb.CreateTableInput, attribute string, role types.KeyType) {
	input.AttributeDefinitions = append(input.AttributeDefinitions, types.AttributeDefinition{
		AttributeName: aws.String(attribute), AttributeType: types.ScalarAttributeTypeS,
	})
	input.KeySchema = append(input.KeySchema, types.KeySchemaElement{AttributeName: aws.String(attribute), KeyType: role})
}

// Key returns the key of an item, as requests of the SDK take it. Sort is the value of the sort
// key, if the table has one.
func (t Table) Key(partition string, sort ...string) map[string]types.AttributeValue {
	key := map[string]types.AttributeValue{t.PartitionKey: &types.AttributeValueMemberS{Value: partition}}
	if t.SortKey != "" && len(sort) > 0 {
		key[t.SortKey] = &types.AttributeValueMemberS{Value: sort[0]}
	}
	return key
}
