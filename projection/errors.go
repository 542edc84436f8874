package projection

import (
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// Errors of this package, for errors.Is. Nothing was written where one is returned.
var (
	// ErrInvalidConfig: a projection that cannot work.
	ErrInvalidConfig = errors.New("invalid projection config")
	// ErrCondition: the condition of a write that is not idempotent is false.
	ErrCondition = errors.New("condition of a write is false")
	// ErrTooManyWrites: more writes than fit one transaction beside the position.
	ErrTooManyWrites = errors.New("too many writes for one event")
)

// MaxWrites is how many writes one event may have: DynamoDB's limit of 100 actions in
// a transaction, less the position.
const MaxWrites = 99

// ConfigError is an [ErrInvalidConfig].
type ConfigError struct{ Reason string }

func (e *ConfigError) Error() string { return "projection: " + e.Reason }

// Is makes errors.Is(err, ErrInvalidConfig) true.
func (e *ConfigError) Is(target error) bool { return target == ErrInvalidConfig }

// ConditionError is an [ErrCondition].
type ConditionError struct {
	Event     aggregate.ID
	Number    uint64
	EventType string
	Table     string
	Write     int // index in what the reaction returned
}

func (e *ConditionError) Error() string {
	return fmt.Sprintf("event %d of %s (%s): the condition of write %d, on table %q, is false: "+
		"correct the read model or the reaction, or mark the write Idempotent if there is nothing to do then",
		e.Number, e.Event, e.EventType, e.Write, e.Table)
}

// Is makes errors.Is(err, ErrCondition) true.
func (e *ConditionError) Is(target error) bool { return target == ErrCondition }

// TooManyWritesError is an [ErrTooManyWrites].
type TooManyWritesError struct {
	Event  aggregate.ID
	Number uint64
	Count  int
}

func (e *TooManyWritesError) Error() string {
	return fmt.Sprintf("event %d of %s: %d writes, one transaction takes %d beside the position: make fewer items of them",
		e.Number, e.Event, e.Count, MaxWrites)
}

// Is makes errors.Is(err, ErrTooManyWrites) true.
func (e *TooManyWritesError) Is(target error) bool { return target == ErrTooManyWrites }
