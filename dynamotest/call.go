package dynamotest

import (
	"slices"
	"sync"

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

	Err   error  // as the client gets it; an SDK type such as *types.ConditionalCheckFailedException
	Fault string // what was done to it, such as "Throttle"; empty for nothing
}

// Capacity is what a call consumed of a table, or of an index of it.
type Capacity struct {
	Table      string
	Index      string // empty for the table
	ReadUnits  float64
	WriteUnits float64
}

func (c *Call) note(p *plan) {
	c.Fault = p.name
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

// Observe calls see after each call, until stop is called. It runs in the goroutine that serves the call, before
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

// Record keeps the calls from now on.
func (db *DB) Record() *Recording {
	r := &Recording{}
	r.stop = db.Observe(func(c Call) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls = append(r.calls, c)
	})
	return r
}

// Recording is what [DB.Record] keeps. It is safe for concurrent use.
type Recording struct {
	stop  func()
	mu    sync.Mutex
	calls []Call
}

// Stop ends the recording.
func (r *Recording) Stop() { r.stop() }

// Reset forgets the calls so far.
func (r *Recording) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = nil
}

// Calls are the calls of some operations, or all if none is named, in the order of their replies.
func (r *Recording) Calls(operations ...string) []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	var calls []Call
	for _, c := range r.calls {
		if len(operations) == 0 || slices.Contains(operations, c.Operation) {
			calls = append(calls, c)
		}
	}
	return calls
}

// Units are the capacity units that some operations consumed, or all if none is named.
func (r *Recording) Units(operations ...string) (read, write float64) {
	for _, c := range r.Calls(operations...) {
		read += c.ReadUnits
		write += c.WriteUnits
	}
	return read, write
}
