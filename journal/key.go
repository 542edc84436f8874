package journal

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

// KeyResolver maps an aggregate to one of the logical shards. It must return the same shard
// forever, in every process: the descriptor stores its Name, and [Open] compares it. Package
// resolver has those of the event-store-adapter family. A program of the family that has a key
// resolver of its own needs the same one here.
type KeyResolver interface {
	Name() string
	Shard(id aggregate.ID, shards int) int
}

func (s *store) Shard(id aggregate.ID) int {
	return s.config.Resolver.Shard(id, s.config.Shards)
}

// keysOf names an item in an error, whatever is wrong with the item.
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
