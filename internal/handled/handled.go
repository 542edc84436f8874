// Package handled defines the context key of the event that a message is about. The subscriber sets
// it, and package repository reads it, so that loads in a handler include the event.
package handled

import (
	"context"

	"github.com/millrace-dev/millrace/aggregate"
)

// Key is the context key of an [Event].
type Key struct{}

// Event is the event of a message that is being handled.
type Event struct {
	Table     string // of the journal
	Aggregate aggregate.ID
	Number    uint64
}

// VersionOf returns the number of the event that is being handled with ctx if it is an event of id
// in the journal with that table. Otherwise it returns 0. The aggregate is at this version or a
// later one.
func VersionOf(ctx context.Context, table string, id aggregate.ID) uint64 {
	e, ok := ctx.Value(Key{}).(Event)
	if !ok || e.Table != table || e.Aggregate != id {
		return 0
	}
	return e.Number
}
