package story_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/faults"
)

// weather lets requests fail, and events come late, until it is calm.
type weather struct {
	calm           atomic.Bool
	failed, hidden atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
}

func newWeather(seed uint64) *weather {
	return &weather{random: rand.New(rand.NewPCG(seed, 1))}
}

func (w *weather) strikes(chance float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.calm.Load() && w.random.Float64() < chance
}

var errCrashed = errors.New("the process has crashed")

// connection is a server's client, which can be cut off. What is under way then may still have an effect, but no reply comes
// back: that is how a crash looks to the database.
type connection struct {
	*faults.Client
	cut     atomic.Bool
	started atomic.Bool // what needs to work once, at the beginning, has
}

var operations = []faults.Operation{
	faults.GetItem, faults.PutItem, faults.UpdateItem, faults.DeleteItem, faults.BatchGetItem, faults.BatchWriteItem, faults.Query,
	faults.Scan, faults.TransactGetItems, faults.TransactWriteItems,
}

func (w *weather) connect(db *dynamodb.Client) *connection {
	c := &connection{Client: faults.New(db)}
	c.Inject(faults.Query, w.late(c))
	for _, operation := range operations {
		c.Inject(operation, w.sometimes(c, 0.03, faults.Throttle()))
	}
	c.Inject(faults.TransactWriteItems, w.sometimes(c, 0.05, faults.LoseReply()))
	c.Inject(faults.TransactWriteItems, w.sometimes(c, 0.03, faults.TransactionConflict()))
	for _, operation := range operations {
		c.Inject(operation, func(ctx context.Context, call faults.Call) (any, error) {
			if c.cut.Load() {
				return nil, errCrashed
			}
			out, err := call.Send(ctx)
			if c.cut.Load() {
				return nil, errCrashed
			}
			return out, err
		})
	}
	return c
}

func (w *weather) sometimes(c *connection, chance float64, fault faults.Fault) faults.Fault {
	return func(ctx context.Context, call faults.Call) (any, error) {
		if !c.started.Load() || !w.strikes(chance) {
			return call.Send(ctx)
		}
		w.failed.Add(1)
		return fault(ctx, call)
	}
}

// late hides one event in ten from the first query of the tail that would find it, as an index does that has not caught up.
func (w *weather) late(c *connection) faults.Fault {
	var mu sync.Mutex
	seen := map[string]bool{}
	return faults.HideFromIndex("journal-tail-index", func(item map[string]types.AttributeValue) bool {
		key, ok := item["skey"].(*types.AttributeValueMemberS)
		mu.Lock()
		defer mu.Unlock()
		if !ok || seen[key.Value] {
			return false
		}
		seen[key.Value] = true
		if !c.started.Load() || !w.strikes(0.1) {
			return false
		}
		w.hidden.Add(1)
		return true
	})
}
