package dynamotest

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// When says to which calls a fault happens. All conditions of an injection must hold.
type When func(*Injection)

// On is the operations, such as "PutItem".
func On(operations ...string) When {
	return func(i *Injection) { i.operations = append(i.operations, operations...) }
}

// Table is the table by its name: calls that name it, and of batches and transactions what is in it.
func Table(name string) When { return func(i *Injection) { i.table = name } }

// Index is the index by its name: Query and Scan of it, and what is on its way to it.
func Index(name string) When { return func(i *Injection) { i.index = name } }

// Key is the item with some key attributes: calls that name it, and of batches and transactions only that item. One
// attribute of two stands for all items that have it. It does not hold for Query and Scan.
func Key(key map[string]types.AttributeValue) When { return func(i *Injection) { i.key = key } }

// Matching is what a function says of an operation and its input, such as a *dynamodb.QueryInput.
func Matching(match func(operation string, input any) bool) When {
	return func(i *Injection) { i.match = match }
}

// After lets the first n calls pass for which the other conditions hold.
func After(n int) When { return func(i *Injection) { i.after = n } }

// Times ends the fault when it has happened n times.
func Times(n int) When { return func(i *Injection) { i.times = n } }

// Chance draws for each call, by [Seed]. The n-th call of an operation with the same keys draws the same in every
// run, in whatever order goroutines make other calls.
func Chance(probability float64) When { return func(i *Injection) { i.chance = probability } }

// Injection is a fault in place. It is safe for concurrent use.
type Injection struct {
	db         *DB
	fault      Fault
	number     uint64 // of injections
	operations []string
	table      string
	index      string
	key        value.Item
	match      func(string, any) bool
	after      int
	times      int
	chance     float64

	mu    sync.Mutex
	seen  int
	fired int
	draws map[uint64]uint64 // how often the same call came
}

// Inject puts a fault in place. Without conditions it happens to every call that it can happen to. Several faults
// can happen to one call; of several that refuse it, the first counts.
func (db *DB) Inject(fault Fault, when ...When) *Injection {
	i := &Injection{db: db, fault: fault, times: -1, chance: 1, draws: map[uint64]uint64{}}
	for _, condition := range when {
		condition(i)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	i.number = db.injected
	db.injected++
	all := append(slices.Clone(*db.injections.Load()), i)
	db.injections.Store(&all)
	return i
}

// Remove ends the fault.
func (i *Injection) Remove() {
	i.db.mu.Lock()
	defer i.db.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(*i.db.injections.Load()), func(other *Injection) bool { return other == i })
	i.db.injections.Store(&left)
}

// Fired tells how often the fault has happened.
func (i *Injection) Fired() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fired
}

// Storm injects what DynamoDB and a network can do to a program at any time, each with a chance at each call:
// throttling, internal errors, conflicts of transactions, cut connections, lost replies, unprocessed items and small
// pages. Calm ends it.
func (db *DB) Storm(chance float64) (calm func()) {
	var all []*Injection
	for _, fault := range []Fault{
		Throttle(), InternalError(), Conflict(), CutConnection(), LoseReply(), Unprocessed(1), SmallPages(1),
	} {
		all = append(all, db.Inject(fault, Chance(chance)))
	}
	return func() {
		for _, i := range all {
			i.Remove()
		}
	}
}

// drawn tells whether anything was drawn at random.
func (db *DB) drawn() bool {
	for _, i := range *db.injections.Load() {
		i.mu.Lock()
		drawn := len(i.draws) > 0
		i.mu.Unlock()
		if drawn {
			return true
		}
	}
	return false
}

// hits tells what of a call the fault happens to, and whether it happens at all.
func (i *Injection) hits(operation string, in any, touches []engine.Touch) (hits []int, random func() *rand.Rand, ok bool) {
	if i.fault.strike == nil || i.fault.on != nil && !slices.Contains(i.fault.on, operation) {
		return nil, nil, false
	}
	if i.operations != nil && !slices.Contains(i.operations, operation) {
		return nil, nil, false
	}
	for n, touch := range touches {
		if i.concerns(touch) {
			hits = append(hits, n)
		}
	}
	if len(hits) == 0 && (len(touches) > 0 || i.table != "" || i.index != "" || i.key != nil) {
		return nil, nil, false
	}
	if i.match != nil && !i.match(operation, in) {
		return nil, nil, false
	}
	random = i.source(operation, touches)
	return hits, random, i.fires(random)
}

func (i *Injection) concerns(touch engine.Touch) bool {
	return (i.table == "" || i.table == touch.Table) && (i.index == "" || i.index == touch.Index) && i.has(touch.Key)
}

func (i *Injection) has(key value.Item) bool {
	for name, v := range i.key {
		if !value.Equal(v, key[name]) {
			return false
		}
	}
	return true
}

// fires draws and counts.
func (i *Injection) fires(random func() *rand.Rand) bool {
	if i.chance < 1 && random().Float64() >= i.chance {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen++; i.seen <= i.after || i.times >= 0 && i.fired >= i.times {
		return false
	}
	i.fired++
	return true
}

// source gives the random numbers of one call. They depend on the seed, the injection, the call, and how often the
// same call came before.
func (i *Injection) source(operation string, touches []engine.Touch) func() *rand.Rand {
	var r *rand.Rand
	return func() *rand.Rand {
		if r == nil {
			h := fnv.New64a()
			write := func(text string) { _, _ = h.Write(binary.AppendUvarint([]byte(text), uint64(len(text)))) }
			write(operation)
			for _, touch := range touches {
				write(touch.Table)
				write(touch.Index)
				for _, name := range slices.Sorted(maps.Keys(touch.Key)) {
					write(name)
					write(text(touch.Key[name]))
				}
			}
			call := h.Sum64() ^ i.number<<48
			i.mu.Lock()
			nth := i.draws[call]
			i.draws[call]++
			i.mu.Unlock()
			r = rand.New(rand.NewPCG(i.db.seed, call+nth)) //nolint:gosec // not for secrets
		}
		return r
	}
}

// text is a key value as text.
func text(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return string(v.Value)
	}
	return ""
}

// indexDelay is how long a change takes to an index: the longest of the delays that are in place.
func (db *DB) indexDelay(table, index string, key func() value.Item) time.Duration {
	var longest time.Duration
	for _, i := range *db.injections.Load() {
		if i.fault.delay == nil {
			continue
		}
		touch := engine.Touch{Table: table, Index: index, Key: key()}
		if !i.concerns(touch) {
			continue
		}
		if random := i.source("", []engine.Touch{touch}); i.fires(random) {
			longest = max(longest, i.fault.delay(random()))
		}
	}
	return longest
}
