package journal

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

// KeyResolver maps an aggregate to one of the logical shards. It must return the same shard
// forever, in every process. The descriptor stores its Name, and [Open] compares it. Package
// resolver contains the resolvers of the event-store-adapter family. If a program of the family has
// its own key resolver, programs of this module need a KeyResolver that returns the same shards.
type KeyResolver interface {
	Name() string
	Shard(id aggregate.ID, shards int) int
}

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
