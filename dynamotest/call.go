package dynamotest

import (
	"slices"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// Call is one request to the database and what came of it. Each attempt of the SDK is a call.
type Call struct {
	Operation string   // such as "Query"
	Tables    []string // that it names, in order
	Index     string   // that it reads
	Items     int      // given back or written
	Scanned   int      // that Query and Scan went through, before the filter

	// Capacity units, by the rules that AWS publishes; in all, and by table and index in Capacity. A condition that
	// fails consumes units too.
	ReadUnits  float64
	WriteUnits float64
	Capacity   []Capacity

	RequestBytes int // of the JSON bodies
	ReplyBytes   int

	Err    error    // as the client gets it; an SDK type such as *types.ConditionalCheckFailedException, not to be changed
	Faults []string // what was done to it, by the names of the functions that make the faults
}

// Capacity is what a call consumed of a table, or of an index of it.
type Capacity struct {
	Table      string
	Index      string // empty for the table
	ReadUnits  float64
	WriteUnits float64
}

func (c *Call) note(p *plan) {
	c.Faults = p.faults
	for _, touch := range p.touches {
		if !slices.Contains(c.Tables, touch.Table) {
			c.Tables = append(c.Tables, touch.Table)
		}
		c.Index = touch.Index
	}
}

func (c *Call) charge(cost *engine.Cost) {
	c.Items, c.Scanned = cost.Returned+cost.Written, cost.Scanned
	c.ReadUnits, c.WriteUnits = cost.Totals()
	for _, charge := range cost.Charges {
		c.Capacity = append(c.Capacity, Capacity{
			Table: charge.Table, Index: charge.Index, ReadUnits: charge.Read, WriteUnits: charge.Write,
		})
	}
}

type observer struct{ see func(Call) }

// Observe calls see after each call, until stop is called; calls that are under way then may still be seen. It runs in the goroutine that serves the call, before
// the client gets the reply.
func (db *DB) Observe(see func(Call)) (stop func()) {
	o := &observer{see}
	db.mu.Lock()
	defer db.mu.Unlock()
	all := append(slices.Clone(*db.observers.Load()), o)
	db.observers.Store(&all)
	return func() {
		db.mu.Lock()
		defer db.mu.Unlock()
		left := slices.DeleteFunc(slices.Clone(*db.observers.Load()), func(other *observer) bool { return other == o })
		db.observers.Store(&left)
	}
}

func (db *DB) observe(c Call) {
	for _, o := range *db.observers.Load() {
		o.see(c)
	}
}
