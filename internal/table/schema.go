package table

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

// CheckpointTable returns the table of consumer groups. It is the same in every layout.
func (t *Table) CheckpointTable() *dynamodb.CreateTableInput {
	a := t.Config.Attributes
	return t.TableInput(t.Config.Tables.Checkpoint, []types.AttributeDefinition{TextKey(a.PartitionKey), TextKey(a.SortKey)})
}

// TextKey returns the definition of a key attribute with text.
func TextKey(name string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
}

// NumberKey returns the definition of a key attribute with numbers.
func NumberKey(name string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeN}
}

// TableInput returns a table as it should be. Attributes are the key attributes of it and its
// indexes.
func (t *Table) TableInput(name string, attributes []types.AttributeDefinition, indexes ...types.GlobalSecondaryIndex) *dynamodb.CreateTableInput {
	billing := types.BillingModePayPerRequest
	if t.Config.Throughput != nil {
		billing = types.BillingModeProvisioned
	}
	return &dynamodb.CreateTableInput{
		TableName:              &name,
		AttributeDefinitions:   attributes,
		KeySchema:              keySchema(t.Config.Attributes.PartitionKey, t.Config.Attributes.SortKey),
		BillingMode:            billing,
		ProvisionedThroughput:  t.Config.Throughput,
		GlobalSecondaryIndexes: indexes,
	}
}

// Index returns an index that projects all attributes.
func (t *Table) Index(name, hash, sort string) types.GlobalSecondaryIndex {
	return types.GlobalSecondaryIndex{
		IndexName:             &name,
		KeySchema:             keySchema(hash, sort),
		Projection:            &types.Projection{ProjectionType: types.ProjectionTypeAll},
		ProvisionedThroughput: t.Config.Throughput,
	}
}

// Shard returns the logical shard of an aggregate, 0 to Shards-1.
func (t *Table) Shard(id aggregate.ID) int {
	return t.Config.Resolver.Shard(id, t.Config.Shards)
}

// KeysOf returns the keys of an item for an error message. They are empty if they are missing.
func (t *Table) KeysOf(it Item) (partition, sort string) {
	partition, _ = StringOf(it[t.Config.Attributes.PartitionKey])
	sort, _ = StringOf(it[t.Config.Attributes.SortKey])
	return partition, sort
}

// AttributeNames returns the names of an expression from pairs of a placeholder and a name.
func AttributeNames(pairs ...string) map[string]string {
	names := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		names[pairs[i]] = pairs[i+1]
	}
	return names
}

func keySchema(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &hash, KeyType: types.KeyTypeHash},
		{AttributeName: &sort, KeyType: types.KeyTypeRange},
	}
}
