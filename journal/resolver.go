package journal

import (
	"hash/fnv"

	"github.com/millrace-dev/millrace/aggregate"
)

// KeyResolver maps an aggregate to one of the logical shards. It must give the
// same answer for ever, in every process: Name is stored in the descriptor and
// compared by every opener.
type KeyResolver interface {
	Name() string
	Shard(id aggregate.ID, shards int) int
}

// FNV1a hashes the id value with FNV-1a, 64 bits, as event-store-adapter-go does.
var FNV1a KeyResolver = fnv1a{}

type fnv1a struct{}

func (fnv1a) Name() string { return "fnv1a-64" }

func (fnv1a) Shard(id aggregate.ID, shards int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id.Value)) // a hash never fails to write
	return int(h.Sum64() % uint64(shards))
}
