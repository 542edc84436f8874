package classic

import (
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
)

func (l *layout) partitionKey(id aggregate.ID) string {
	return storage.ShardKey(id.Type, l.Shard(id))
}

func (l *layout) key(id aggregate.ID, number uint64) table.Item {
	return table.Item{
		l.Config.Attributes.PartitionKey: table.StringValue(l.partitionKey(id)),
		l.Config.Attributes.SortKey:      table.StringValue(storage.SortKey(id, number)),
	}
}

func (l *layout) keys(id aggregate.ID, numbers []uint64) []table.Item {
	keys := make([]table.Item, len(numbers))
	for i, n := range numbers {
		keys[i] = l.key(id, n)
	}
	return keys
}

// typeOfShardKey reverses ShardKey. Types may contain hyphens, shard numbers do not.
func typeOfShardKey(key string) (string, bool) {
	i := strings.LastIndexByte(key, '-')
	if i <= 0 {
		return "", false
	}
	return key[:i], true
}

func (l *layout) EventOf(key table.Item) (id aggregate.ID, number uint64, ok bool) {
	partition, sort := l.KeysOf(key)
	if at := strings.LastIndexByte(sort, '-'); at > 0 {
		id, number, ok = ownKeys(partition, sort, sort[:at], sort[at+1:])
	}
	return id, number, ok && id.Validate() == nil
}

// aggregateOf reports which aggregate an item belongs to. The aggregate id attribute alone is
// ambiguous: "user" + "account-x" and "user-account" + "x" are the same text. Only the partition
// key distinguishes them.
func (l *layout) aggregateOf(it table.Item) (aggregate.ID, bool) {
	aid, ok := table.StringOf(it[l.Config.Attributes.AggregateID])
	if !ok {
		return aggregate.ID{}, false
	}
	partition, _ := l.KeysOf(it)
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

// shorten is what to do about an id that is too long. The item itself is not damaged.
const shorten = "use a shorter id for the aggregate in the program that writes it, or delete its items"

// tooLong returns why the id of another program's aggregate is too long for Millrace, or an empty
// string. The other program may reserve less than the twenty digits of a number.
func tooLong(id aggregate.ID) string {
	n := len(id.Type) + len("-") + len(id.Value)
	if n <= aggregate.MaxIDBytes {
		return ""
	}
	return fmt.Sprintf("belongs to an aggregate whose id has %d bytes: at most %d leave room for all keys", n, aggregate.MaxIDBytes)
}
