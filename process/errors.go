package process

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
)

// Errors of this package, for errors.Is. With each of them, nothing was stored.
var (
	// ErrUnrecorded reports that a step sends commands or sets timeouts but has no event, so the
	// process would not remember the step.
	ErrUnrecorded = errors.New("the step records no event: return an event that records what the step does")
	// ErrInvalidStep reports that a step cannot be stored. The text says why.
	ErrInvalidStep = errors.New("invalid step")
	// ErrIgnored reports that a process has nothing to do for an input. [Config].Middleware
	// receives it; Handle returns nil instead.
	ErrIgnored = errors.New("ignored")
	// ErrNotPending reports that a timeout or command was handled, cancelled, set again or dropped
	// since it was read, or that a process is not listed as open.
	ErrNotPending = errors.New("not pending any more")
	// ErrNotEnded reports that a process has not begun, or has not ended.
	ErrNotEnded = errors.New("the process has not ended")
	// ErrNoID reports a message without a UUID. The UUID is needed to recognise redeliveries.
	ErrNoID = errors.New("message has no UUID")
)

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("process config: %s %s", e.Field, e.Reason) }

// DefinitionError reports everything that is wrong with a definition.
type DefinitionError struct {
	Process  string   // the type of the process
	Problems []string // one text for each problem
}

func (e *DefinitionError) Error() string {
	return fmt.Sprintf("definition of process %q: %s", e.Process, strings.Join(e.Problems, "; "))
}

// UnknownTimeoutError reports a timeout without a reaction in the definition. Process is the type
// of the process, and Timeout the name of the timeout.
type UnknownTimeoutError struct{ Process, Timeout string }

func (e *UnknownTimeoutError) Error() string {
	return fmt.Sprintf("process %q has no reaction to the timeout %q: add one with OnTimeout", e.Process, e.Timeout)
}

// TooManyTimeoutsError reports that a process would have more than Max timeouts at the same time.
// Nothing was stored. The limit is for steps that set timeouts with keys.
type TooManyTimeoutsError struct {
	Process aggregate.ID // the process
	Max     int          // how many it can have
}

func (e *TooManyTimeoutsError) Error() string {
	return fmt.Sprintf("process %s would have more than %d timeouts: cancel some, or use a process for each key", e.Process, e.Max)
}
