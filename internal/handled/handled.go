// Package handled has the key under which the contexts of messages carry the event that is being
// handled. It stands between the subscriber, whose contexts have it, and package repository, whose
// loads include that event.
package handled

import (
	"context"

	"github.com/millrace-dev/millrace/aggregate"
)

// Key is the key of an Event.
type Key struct{}

// Event is the event of a message that is being handled.
type Event struct {
	Table     string // of the journal
	Aggregate aggregate.ID
	Number    uint64
}

// VersionOf returns the version that an aggregate of a journal has reached at least, as its event
// is being handled. It returns 0 if nothing is known.
func VersionOf(ctx context.Context, table string, id aggregate.ID) uint64 {
	e, ok := ctx.Value(Key{}).(Event)
	if !ok || e.Table != table || e.Aggregate != id {
		return 0
	}
	return e.Number
}
