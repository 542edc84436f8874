package journal

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

func (s *store) Shard(id aggregate.ID) int {
	return s.config.Resolver.Shard(id, s.config.Shards)
}

// keysOf returns the keys of an item for an error message. They are empty if they are missing.
func (s *store) keysOf(it item) (partition, sort string) {
	partition, _ = stringOf(it[s.config.Attributes.PartitionKey])
	sort, _ = stringOf(it[s.config.Attributes.SortKey])
	return partition, sort
}

func attributeNames(pairs ...string) map[string]string {
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
