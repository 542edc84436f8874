package process

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of this package, for errors.Is. Nothing was stored where one is returned.
var (
	// ErrUnrecorded reports that a step sends commands or sets timeouts and has no event, so that
	// the process would not remember it.
	ErrUnrecorded = errors.New("the step records no event: return one that tells what was done")
	// ErrInvalidStep reports a step that cannot be stored.
	ErrInvalidStep = errors.New("invalid step")
	// ErrPassedOver reports that a process has nothing to do with an input. Handle returns nil
	// then.
	ErrPassedOver = errors.New("passed over")
	// ErrNotPending reports that a timeout or command was done, cancelled, set again or dropped
	// since it was read, or that a process is not listed as open.
	ErrNotPending = errors.New("not pending any more")
	// ErrNotOver reports that a process has not begun, or is not over.
	ErrNotOver = errors.New("the process is not over")
	// ErrNoID reports a message without a UUID, by which redeliveries are recognised.
	ErrNoID = errors.New("message has no UUID")
)

// ConfigError reports a setting that cannot work.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("process config: %s %s", e.Field, e.Reason) }

// DefinitionError reports all that is wrong with a definition.
type DefinitionError struct {
	Process  string
	Problems []string
}

func (e *DefinitionError) Error() string {
	return fmt.Sprintf("definition of process %q: %s", e.Process, strings.Join(e.Problems, "; "))
}

// UnknownTimeoutError reports a timeout to which the definition has no reaction.
type UnknownTimeoutError struct{ Process, Timeout string }

func (e *UnknownTimeoutError) Error() string {
	return fmt.Sprintf("process %q has no reaction to the timeout %q: add one with OnTimeout", e.Process, e.Timeout)
}
