package engine

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// Partition identifies the items with one partition key of a table or of a global index.
type Partition struct {
	Table string
	Index string // empty for the table
	Key   types.AttributeValue
}

// throughput limits the units of each partition in a second, with one token bucket for reads and
// one for writes. Nil means no limit.
type throughput struct {
	now         func() time.Time
	read, write float64 // units in a second; 0 for no limit

	mu      sync.Mutex
	buckets map[bucketKey]bucket // buckets that may not be full
	most    int                  // number of buckets above which full ones are dropped
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

// demand is the number of units that an action needs of a partition.
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

// take consumes the units that the actions of a call need. If a partition has too few left, it
// consumes nothing, and returns the indexes of the actions that need such a partition. A full
// bucket is enough for any demand and then has a debt, so that a call that needs more than the
// units of a second can succeed.
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

// drop removes full buckets if there are many.
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

// admit consumes the units of a call with one action. If a partition has too few left, it returns
// DynamoDB's error.
func (db *Database) admit(c *Cost, demands func() []demand) error {
	if db.throughput == nil || db.throughput.take(c, demands()) == nil {
		return nil
	}
	return Throttled(c.Exhausted)
}

// Throttled returns the error of a call that was refused because of missing throughput.
func Throttled(exhausted []Partition) error {
	message := ThrottledMessage
	if len(exhausted) > 0 && exhausted[0].Index != "" {
		message = throttledByIndex
	}
	return &types.ProvisionedThroughputExceededException{Message: aws.String(message)}
}

// ThrottledCode is the code of a reason for which a transaction is cancelled.
const ThrottledCode = "ProvisionedThroughputExceeded"

// ThrottledMessage is the message of an error about missing throughput.
const (
	ThrottledMessage = "The level of configured provisioned throughput for the table was exceeded. " +
		"Consider increasing your provisioning level with the UpdateTable API."
	throttledByIndex = "The level of configured provisioned throughput for one or more global secondary indexes of the table was exceeded. " +
		"Consider updating your provisioning level for the under-provisioned global secondary indexes with the UpdateTable API"
)

// reading returns the demand of a read of one item.
func (t *table) reading(at position, key value.Item, units float64) func() []demand {
	return func() []demand { return []demand{t.demand(at, key, units, false)} }
}

// demand returns a demand on a partition of the table.
func (t *table) demand(at position, item value.Item, units float64, writes bool) demand {
	return demand{bucketKey{t, nil, at.partition, writes}, item[t.key.partition.name], units}
}

// demands returns the demands of a write that replaces an item: on the table's partition, and on
// those of its global indexes in which an entry changes. A global index without capacity also
// throttles the table. Next is nil for a deletion.
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
