package journaltype

import (
	"github.com/millrace-dev/millrace/aggregate"
)

// KeyResolver maps an aggregate to one of the logical shards. It must return the same shard
// forever, in every process. The descriptor stores its Name, and journal.Open compares it. Package
// resolver contains the resolvers of the event-store-adapter family. If a program of the family has
// its own key resolver, programs of this module need a KeyResolver that returns the same shards.
type KeyResolver interface {
	Name() string
	Shard(id aggregate.ID, shards int) int
}
