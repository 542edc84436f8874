package dedup

import (
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
)

// Errors of this package, for errors.Is. [*ConfigError] and [*GapError] are for errors.As.
var (
	// ErrNoEvent: the metadata of a message does not identify an event.
	ErrNoEvent = errors.New("message is not a forwarded event")
	// ErrProduced: a handler under [Positions.Middleware] returned messages. The Router would
	// publish them after the position has moved, and if that failed they would be lost. Publish
	// them in the handler, before it returns.
	ErrProduced = errors.New("handler returned messages")
	// ErrPart: the message is one of several that an event has become (subscriber.Config.Definitions).
	// All have the number of the event, so [Positions] cannot tell which of them were handled. Use
	// [Keys].
	ErrPart = errors.New("message is one of several of an event: use dedup.Keys, which tells them apart")
	// ErrDeferred: the message is of an event that was deferred (subscriber.Defer), and comes after
	// later ones of its aggregate. [Positions] would take it for one that was handled. Use [Keys].
	ErrDeferred = errors.New("message is of a deferred event: use dedup.Keys, which does not depend on the order")
)

// ConfigError reports a setting that cannot work.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return "dedup: " + e.Field + " " + e.Reason }

var errNoClient = &ConfigError{Field: "client", Reason: "is nil: pass a *dynamodb.Client"}

// noEvent says why a message is not a forwarded event, and what to do.
func noEvent(msg *message.Message, reason string) error {
	return fmt.Errorf("%w: message %s %s: forward messages of the subscriber with their metadata, or use Keys for others",
		ErrNoEvent, msg.UUID, reason)
}

// GapError reports that events before this one have not been handled. The message fails and comes
// again.
type GapError struct {
	Aggregate aggregate.ID
	Number    uint64 // of the event that came
	Expected  uint64 // the number after the last one that was handled
}

func (e *GapError) Error() string {
	return fmt.Sprintf("event %d of %s came before event %d was handled: it has to come again; if that one was left out on purpose, "+
		"use PassGaps, and if it is lost, Positions.Set goes on without it", e.Number, e.Aggregate, e.Expected)
}
