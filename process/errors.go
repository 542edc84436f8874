package process

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of this package, for errors.Is. Nothing was stored where one is returned.
var (
	// ErrInvalidConfig is the sentinel of [*ConfigError].
	ErrInvalidConfig = errors.New("invalid process config")
	// ErrInvalidDefinition is the sentinel of [*DefinitionError].
	ErrInvalidDefinition = errors.New("invalid process definition")
	// ErrUnrecorded: a step sends commands or sets timeouts and has no event, so that the process would not remember it.
	ErrUnrecorded = errors.New("the step records no event: return one that tells what was done")
	// ErrInvalidStep: a step that cannot be stored.
	ErrInvalidStep = errors.New("invalid step")
	// ErrUnknownTimeout is the sentinel of [*UnknownTimeoutError].
	ErrUnknownTimeout = errors.New("unknown timeout")
	// ErrPassedOver: a process has nothing to do with an input. Handle returns nil then.
	ErrPassedOver = errors.New("passed over")
	// ErrNotPending: it was done, cancelled, set anew or dropped since it was read.
	ErrNotPending = errors.New("not pending any more")
	// ErrNoID: a message without a UUID, by which a redelivery could be told.
	ErrNoID = errors.New("message has no UUID")
)

// ConfigError is an [ErrInvalidConfig].
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("process config: %s %s", e.Field, e.Reason) }

// Is makes errors.Is(err, ErrInvalidConfig) true.
func (e *ConfigError) Is(target error) bool { return target == ErrInvalidConfig }

// DefinitionError lists everything that is wrong with a definition.
type DefinitionError struct {
	Process  string
	Problems []string
}

func (e *DefinitionError) Error() string {
	return fmt.Sprintf("definition of process %q: %s", e.Process, strings.Join(e.Problems, "; "))
}

// Is makes errors.Is(err, ErrInvalidDefinition) true.
func (e *DefinitionError) Is(target error) bool { return target == ErrInvalidDefinition }

// UnknownTimeoutError is an [ErrUnknownTimeout].
type UnknownTimeoutError struct{ Process, Timeout string }

func (e *UnknownTimeoutError) Error() string {
	return fmt.Sprintf("process %q has no reaction to the timeout %q: add one with OnTimeout", e.Process, e.Timeout)
}

// Is makes errors.Is(err, ErrUnknownTimeout) true.
func (e *UnknownTimeoutError) Is(target error) bool { return target == ErrUnknownTimeout }

// StepTooLargeError is an [ErrInvalidStep]: the commands of one step do not fit one item.
type StepTooLargeError struct{ Bytes int }

func (e *StepTooLargeError) Error() string {
	return fmt.Sprintf("the commands of the step have %d bytes, one item takes %d: send what is large by reference", e.Bytes, maxCommandBytes)
}

// Is makes errors.Is(err, ErrInvalidStep) true.
func (e *StepTooLargeError) Is(target error) bool { return target == ErrInvalidStep }
