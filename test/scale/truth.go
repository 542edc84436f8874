package scale

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// truth holds the committed and handled events, outside the database.
type truth struct {
	versions  []atomic.Uint64   // of aggregates
	positions [][]atomic.Uint64 // of groups and aggregates
	latencies []*Latencies      // of groups
	repeated  atomic.Uint64
	wrong     atomic.Uint64 // events that arrived before their predecessor
}

func newTruth(groups, aggregates int) *truth {
	t := &truth{versions: make([]atomic.Uint64, aggregates)}
	for range groups {
		t.positions = append(t.positions, make([]atomic.Uint64, aggregates))
		t.latencies = append(t.latencies, &Latencies{})
	}
	return t
}

func idOf(n int) aggregate.ID { return aggregate.ID{Type: topic, Value: strconv.Itoa(n)} }

// handled records that a group handles an event. The events of one aggregate are handled one at a
// time.
func (t *truth) handled(group int, r *journal.Record) {
	n, err := strconv.Atoi(r.Aggregate.Value)
	if err != nil {
		t.wrong.Add(1)
		return
	}
	at := &t.positions[group][n]
	switch position := at.Load(); {
	case r.Number == position+1:
		at.Store(r.Number)
		t.latencies[group].add(time.Since(r.OccurredAt))
	case r.Number <= position:
		t.repeated.Add(1)
	default:
		t.wrong.Add(1)
	}
}

// undelivered returns the number of missing deliveries. Each event has one for each group.
func (t *truth) undelivered() (n uint64) {
	for i := range t.versions {
		for g := range t.positions {
			if version, position := t.versions[i].Load(), t.positions[g][i].Load(); position < version {
				n += version - position
			}
		}
	}
	return n
}
