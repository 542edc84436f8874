package story_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
)

// faultMix makes requests fail and events late, until it is calm.
type faultMix struct {
	calm   atomic.Bool
	hidden atomic.Int64

	mu       sync.Mutex
	random   *rand.Rand
	failures []*dynamotest.Injection
}

func newFaultMix(seed uint64) *faultMix {
	return &faultMix{random: rand.New(rand.NewPCG(seed, 1))}
}

func (m *faultMix) draws(chance float64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.calm.Load() && m.random.Float64() < chance
}

// failed returns the number of requests that have failed.
func (m *faultMix) failed() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, i := range m.failures {
		n += i.Fired()
	}
	return n
}

// connection is a server's connection to the database. Closing it looks to the database like a
// crash of the server.
type connection struct {
	*dynamotest.Proxy
	client *dynamodb.Client
	// Requests that must succeed once at the start have succeeded.
	started atomic.Bool
}

func (m *faultMix) connect(db *dynamodb.Client) *connection {
	c := &connection{Proxy: dynamotest.OpenProxy(db)}
	c.client = c.Client(testdb.Once)
	items := dynamotest.On("GetItem", "PutItem", "UpdateItem", "DeleteItem", "BatchGetItem", "BatchWriteItem",
		"Query", "Scan", "TransactGetItems", "TransactWriteItems")
	commits := dynamotest.On("PutItem", "TransactWriteItems")
	sometimes := func(chance float64) dynamotest.When {
		return dynamotest.Matching(func(string, any) bool { return c.started.Load() && m.draws(chance) })
	}
	failures := []*dynamotest.Injection{
		c.Inject(dynamotest.Throttle(), items, sometimes(0.03)),
		c.Inject(dynamotest.LoseReply(), commits, sometimes(0.05)),
		c.Inject(dynamotest.Conflict(), commits, sometimes(0.03)),
	}
	m.mu.Lock()
	m.failures = append(m.failures, failures...)
	m.mu.Unlock()
	c.Inject(dynamotest.Hide(m.late(c)), dynamotest.On("Query"), dynamotest.Index("journal-tail-index"))
	return c
}

// late hides one event in ten from the first query of the tail that would find it, as an index that
// is behind does.
func (m *faultMix) late(c *connection) func(item map[string]types.AttributeValue) bool {
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(item map[string]types.AttributeValue) bool {
		key := keyOf(item)
		mu.Lock()
		defer mu.Unlock()
		if seen[key] {
			return false
		}
		seen[key] = true
		if !c.started.Load() || !m.draws(0.1) {
			return false
		}
		m.hidden.Add(1)
		return true
	}
}

// keyOf returns the key of an item. The sort key is text in the classic layout, and a number in the
// packed one.
func keyOf(item map[string]types.AttributeValue) string {
	partition, _ := item["pkey"].(*types.AttributeValueMemberS)
	switch sort := item["skey"].(type) {
	case *types.AttributeValueMemberS:
		return partition.Value + " " + sort.Value
	case *types.AttributeValueMemberN:
		return partition.Value + " " + sort.Value
	default:
		return ""
	}
}
