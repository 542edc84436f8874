package journal

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// KeyResolver maps an aggregate to one of the logical shards. It must return the same shard
// forever, in every process: the descriptor stores its Name, and [Open] compares it. Package
// resolver has those of the event-store-adapter family. A program of the family that has a key
// resolver of its own needs the same one here.
type KeyResolver interface {
	Name() string
	Shard(id aggregate.ID, shards int) int
}

func (j *engine) Shard(id aggregate.ID) int {
	return j.config.Resolver.Shard(id, j.config.Shards)
}

func (j *engine) partitionKey(id aggregate.ID) string {
	return storage.ShardKey(id.Type, j.Shard(id))
}

func (j *engine) key(id aggregate.ID, number uint64) item {
	return item{
		j.config.Attributes.PartitionKey: stringValue(j.partitionKey(id)),
		j.config.Attributes.SortKey:      stringValue(storage.SortKey(id, number)),
	}
}

func (j *engine) keys(id aggregate.ID, numbers []uint64) []item {
	keys := make([]item, len(numbers))
	for i, n := range numbers {
		keys[i] = j.key(id, n)
	}
	return keys
}

// keysOf names an item in an error, whatever is wrong with the item.
func (j *engine) keysOf(it item) (partition, sort string) {
	partition, _ = stringOf(it[j.config.Attributes.PartitionKey])
	sort, _ = stringOf(it[j.config.Attributes.SortKey])
	return partition, sort
}

// typeOfShardKey undoes ShardKey; types may contain hyphens, shards do not.
func typeOfShardKey(key string) (string, bool) {
	i := strings.LastIndexByte(key, '-')
	if i <= 0 {
		return "", false
	}
	return key[:i], true
}

// aggregateOf reports which aggregate an item belongs to. The text of aid alone does
// not: "user" + "account-x" and "user-account" + "x" read the same, and only
// the partition key tells them apart.
func (j *engine) aggregateOf(it item) (aggregate.ID, bool) {
	aid, ok := stringOf(it[j.config.Attributes.AggregateID])
	if !ok {
		return aggregate.ID{}, false
	}
	partition, _ := j.keysOf(it)
	aggregateType, ok := typeOfShardKey(partition)
	if !ok {
		return aggregate.ID{}, false
	}
	value, ok := strings.CutPrefix(aid, aggregateType+"-")
	if !ok || value == "" {
		return aggregate.ID{}, false
	}
	return aggregate.ID{Type: aggregateType, Value: value}, true
}

// tooLong says why an aggregate of a foreign program cannot be used, empty if it can. The program
// itself needs no room for a number of twenty digits.
func tooLong(id aggregate.ID) string {
	n := len(id.Type) + len("-") + len(id.Value)
	if n <= aggregate.MaxIDBytes {
		return ""
	}
	return fmt.Sprintf("belongs to an aggregate whose id has %d bytes: at most %d leave room for all keys", n, aggregate.MaxIDBytes)
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
