// Package handled defines the context key of the event that a message carries. The subscriber sets
// it. Package repository reads it, so that a load in a handler includes the event. Package command
// writes to its log.
package handled

import (
	"context"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
)

// Key is the context key of an [Event].
type Key struct{}

// Event identifies the event of a message that is being handled.
type Event struct {
	Table     string // the name of the journal table
	Aggregate aggregate.ID
	Number    uint64
	// Logger is the logger of the subscriber. It names the topic and the consumer group.
	Logger watermill.LoggerAdapter
}

// LoggerOf returns the logger of the subscriber whose message is being handled with ctx. Otherwise
// it returns a logger that logs nothing.
func LoggerOf(ctx context.Context) watermill.LoggerAdapter {
	if e, ok := ctx.Value(Key{}).(Event); ok && e.Logger != nil {
		return e.Logger
	}
	return watermill.NopLogger{}
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
