package dedup

import (
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// Sentinels for errors.Is. The types that carry the details are named after them.
var (
	// ErrInvalidConfig: a setting that cannot work.
	ErrInvalidConfig = errors.New("invalid dedup config")
	// ErrNoEvent: the metadata of a message does not tell which event it is.
	ErrNoEvent = errors.New("message is no forwarded event")
	// ErrGap: events before this one have not been handled. The message is to come again.
	ErrGap = errors.New("events are missing")
	// ErrProduced: a handler under [Positions.Middleware] returned messages. The Router would publish them after the
	// position has moved, and if that failed they would be lost. Publish them in the handler, before it returns.
	ErrProduced = errors.New("handler returned messages")
)

// ConfigError is an [ErrInvalidConfig].
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return "dedup: " + e.Field + " " + e.Reason }

// Is makes errors.Is(err, ErrInvalidConfig) true.
func (e *ConfigError) Is(target error) bool { return target == ErrInvalidConfig }

var errNoClient = &ConfigError{Field: "client", Reason: "is nil: pass a *dynamodb.Client"}

// NoEventError is an [ErrNoEvent].
type NoEventError struct {
	UUID   string // of the message
	Reason string
}

func (e *NoEventError) Error() string {
	return fmt.Sprintf("message %s %s: forward messages of the subscriber with their metadata, or use Keys for others", e.UUID, e.Reason)
}

// Is makes errors.Is(err, ErrNoEvent) true.
func (e *NoEventError) Is(target error) bool { return target == ErrNoEvent }

// GapError is an [ErrGap].
type GapError struct {
	Aggregate aggregate.ID
	Number    uint64 // of the event that came
	Expected  uint64 // the number after the last one that was handled
}

func (e *GapError) Error() string {
	return fmt.Sprintf("event %d of %s came before event %d was handled: it has to come again; if that one was left out on purpose, "+
		"use PassGaps, and if it is lost, Positions.Set goes on without it", e.Number, e.Aggregate, e.Expected)
}

// Is makes errors.Is(err, ErrGap) true.
func (e *GapError) Is(target error) bool { return target == ErrGap }
