package resolver_test

import (
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/resolver"
)

// The shard of an aggregate depends on the resolver and on the number of shards.
func Example() {
	id := aggregate.ID{Type: "user-account", Value: "42"}
	fmt.Println(resolver.FNV1a.Name(), resolver.FNV1a.Shard(id, 16))
	fmt.Println(resolver.JavaHash.Name(), resolver.JavaHash.Shard(id, 16))
	// Output:
	// fnv1a-64 3
	// java-hash 14
}
