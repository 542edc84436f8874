package dedup

import (
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
)

// Errors of this package, for errors.Is. [*ConfigError] and [*GapError] are for errors.As.
var (
	// ErrNoEvent reports that the metadata of a message does not identify an event.
	ErrNoEvent = errors.New("message is not a forwarded event")
	// ErrProduced reports that a handler under [Positions.Middleware] returned messages. The Router
	// publishes such messages after the position has moved. If that failed, they would be lost.
	// Publish them in the handler, before it returns.
	ErrProduced = errors.New("handler returned messages")
	// ErrSplit reports that an upcaster made several messages of one event
	// (subscriber.Config.Definitions). All have the number of the event, so [Positions] cannot
	// distinguish them. Use [Keys].
	ErrSplit = errors.New("message is one of several of an event: use dedup.Keys, which distinguishes them")
	// ErrDeferred reports that the event of the message was deferred (subscriber.Defer). It comes
	// after later events of its aggregate, so [Positions] would take it for a duplicate. Use
	// [Keys].
	ErrDeferred = errors.New("message is of a deferred event: use dedup.Keys, which does not depend on the order")
)

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return "dedup: " + e.Field + " " + e.Reason }

var errNoClient = &ConfigError{Field: "client", Reason: "is nil: pass a *dynamodb.Client"}

// noEvent returns an ErrNoEvent with the reason, and with the advice what to do.
func noEvent(msg *message.Message, reason string) error {
	return fmt.Errorf("%w: message %s %s: forward messages of the subscriber with their metadata, or use Keys for others",
		ErrNoEvent, msg.UUID, reason)
}

// GapError reports that events before the event of a message have not been handled. The message
// fails and is delivered again.
type GapError struct {
	Aggregate aggregate.ID // the aggregate of the message
	Number    uint64       // number of the event of the message
	Expected  uint64       // number of the next event to handle
}

func (e *GapError) Error() string {
	return fmt.Sprintf("event %d of %s came before event %d was handled: it must be delivered again; if event %d was left out on purpose, "+
		"use PassGaps, and if it is lost, skip it with Positions.Set", e.Number, e.Aggregate, e.Expected, e.Expected)
}
