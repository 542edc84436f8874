package engine

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// Partition is the items with one partition key of a table, or of a global index of it.
type Partition struct {
	Table string
	Index string // empty for the table
	Key   types.AttributeValue
}

// throughput bounds what each partition does in a second, by a token bucket for its reads and one
// for its writes. Nil does not bound anything.
type throughput struct {
	now         func() time.Time
	read, write float64 // units in a second; 0 for any number

	mu      sync.Mutex
	buckets map[bucketKey]bucket // those that may not be full
	most    int                  // buckets, before those that are full again are dropped
}

type bucketKey struct {
	t         *table
	ix        *index // nil for the table and its local indexes
	partition string
	writes    bool
}

type bucket struct {
	left float64
	at   time.Time
}

// demand is what an action needs of a partition.
type demand struct {
	bucketKey
	key   types.AttributeValue
	units float64
}

const minBuckets = 1 << 10

func newThroughput(read, write float64, now func() time.Time) *throughput {
	if read == 0 && write == 0 {
		return nil
	}
	return &throughput{now: now, read: read, write: write, buckets: map[bucketKey]bucket{}, most: minBuckets}
}

// take consumes what the actions of a call need, or nothing if a partition has too little left, and
// returns the indexes of the actions that need one of those. A full bucket suffices for anything,
// and then owes the rest, so that a call that needs more than a second's units can happen at all.
func (l *throughput) take(c *Cost, actions ...[]demand) (short []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	needs := map[bucketKey]float64{}
	for _, action := range actions {
		for _, d := range action {
			needs[d.bucketKey] += d.units
		}
	}
	exhausted := map[bucketKey]bool{}
	for k, units := range needs {
		left := l.left(k, now)
		if rate := l.rate(k); rate > 0 && left < min(units, rate) {
			exhausted[k] = true
		}
	}
	if len(exhausted) == 0 {
		for k, units := range needs {
			if l.rate(k) > 0 {
				l.buckets[k] = bucket{left: l.left(k, now) - units, at: now}
			}
		}
		l.drop(now)
		return nil
	}
	noted := map[bucketKey]bool{}
	for i, action := range actions {
		hit := false
		for _, d := range action {
			if !exhausted[d.bucketKey] {
				continue
			}
			hit = true
			if !noted[d.bucketKey] {
				noted[d.bucketKey] = true
				c.Exhausted = append(c.Exhausted, d.named())
			}
		}
		if hit {
			short = append(short, i)
		}
	}
	return short
}

func (l *throughput) rate(k bucketKey) float64 {
	if k.writes {
		return l.write
	}
	return l.read
}

func (l *throughput) left(k bucketKey, now time.Time) float64 {
	b, ok := l.buckets[k]
	if !ok {
		return l.rate(k)
	}
	return min(l.rate(k), b.left+max(0, now.Sub(b.at).Seconds())*l.rate(k))
}

// drop forgets buckets that are full again, once there are many.
func (l *throughput) drop(now time.Time) {
	if len(l.buckets) < l.most {
		return
	}
	for k := range l.buckets {
		if l.left(k, now) >= l.rate(k) {
			delete(l.buckets, k)
		}
	}
	l.most = max(minBuckets, 2*len(l.buckets))
}

func (d *demand) named() Partition {
	p := Partition{Table: d.t.name, Key: d.key}
	if d.ix != nil {
		p.Index = d.ix.name
	}
	return p
}

// admit consumes what a call of one action needs. The error is DynamoDB's, for a partition that has
// too little left.
func (db *Database) admit(c *Cost, demands func() []demand) error {
	if db.throughput == nil || db.throughput.take(c, demands()) == nil {
		return nil
	}
	return Throttled(c.Exhausted)
}

// Throttled is the error of a call for lack of throughput.
func Throttled(exhausted []Partition) error {
	message := ThrottledMessage
	if len(exhausted) > 0 && exhausted[0].Index != "" {
		message = throttledByIndex
	}
	return &types.ProvisionedThroughputExceededException{Message: aws.String(message)}
}

// ThrottledCode is the code of a reason for which a transaction is cancelled.
const ThrottledCode = "ProvisionedThroughputExceeded"

// ThrottledMessage is the text of an error about a lack of throughput.
const (
	ThrottledMessage = "The level of configured provisioned throughput for the table was exceeded. " +
		"Consider increasing your provisioning level with the UpdateTable API."
	throttledByIndex = "The level of configured provisioned throughput for one or more global secondary indexes of the table was exceeded. " +
		"Consider updating your provisioning level for the under-provisioned global secondary indexes with the UpdateTable API"
)

// reading is what a read of one item needs.
func (t *table) reading(at position, key value.Item, units float64) func() []demand {
	return func() []demand { return []demand{t.demand(at, key, units, false)} }
}

// demand is one on a partition of the table.
func (t *table) demand(at position, item value.Item, units float64, writes bool) demand {
	return demand{bucketKey{t, nil, at.partition, writes}, item[t.key.partition.name], units}
}

// demands are what a write needs that replaces an item: of the table's partition, and of those of
// its global indexes in which an entry changes. A global index that cannot take a change pushes
// back on the table. Next is nil for a deletion.
func (t *table) demands(at position, key value.Item, next value.Item, factor float64) []demand {
	change := t.change(at, next)
	all := append(make([]demand, 0, 1+len(t.indexes)), t.demand(at, key, factor*change.units, true))
	for _, e := range change.entries {
		switch {
		case !e.ix.global:
			all[0].units += e.units
		case e.old == nil || e.next == nil || e.old.partition == e.next.partition:
			all = append(all, e.demand(t, e.any(), e.units))
		default:
			all = append(all, e.demand(t, e.old, writeUnits(e.old.size)), e.demand(t, e.next, writeUnits(e.next.size)))
		}
	}
	return all
}

func (e *entryChange) any() *row {
	if e.next != nil {
		return e.next
	}
	return e.old
}

func (e *entryChange) demand(t *table, r *row, units float64) demand {
	return demand{bucketKey{t, e.ix, r.partition, true}, r.item[e.ix.key.partition.name], units}
}
