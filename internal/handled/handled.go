// Package handled defines the context key of the event that a message carries. The subscriber sets
// it, and package repository reads it. So a load in a handler includes the event.
package handled

import (
	"context"

	"github.com/millrace-dev/millrace/aggregate"
)

// Key is the context key of an [Event].
type Key struct{}

// Event identifies the event of a message that is being handled.
type Event struct {
	Table     string // the name of the journal table
	Aggregate aggregate.ID
	Number    uint64
}

// VersionOf returns the number of the event that is being handled with ctx, if it is an event of id
// in the journal with that table. The aggregate has at least this version. Otherwise VersionOf
// returns 0.
func VersionOf(ctx context.Context, table string, id aggregate.ID) uint64 {
	e, ok := ctx.Value(Key{}).(Event)
	if !ok || e.Table != table || e.Aggregate != id {
		return 0
	}
	return e.Number
}
