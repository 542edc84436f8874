package table

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

func (s *Table) Shard(id aggregate.ID) int {
	return s.Config.Resolver.Shard(id, s.Config.Shards)
}

// KeysOf returns the keys of an item for an error message. They are empty if they are missing.
func (s *Table) KeysOf(it Item) (partition, sort string) {
	partition, _ = StringOf(it[s.Config.Attributes.PartitionKey])
	sort, _ = StringOf(it[s.Config.Attributes.SortKey])
	return partition, sort
}

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
