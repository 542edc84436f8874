package encrypt

import (
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// Sentinels for errors.Is. That of a key that was destroyed is [journal.ErrKeyDestroyed].
var (
	// ErrNoKey: an encrypted payload whose aggregate has no key, nor a tombstone of one. The table of keys is
	// another than the one it was written with, or has been lost. Nothing was written.
	ErrNoKey = errors.New("no encryption key")
	// ErrForged: a payload or a wrapped key does not decrypt. It was changed, moved from another place, or encrypted
	// with another key.
	ErrForged = errors.New("does not decrypt")
	// ErrInvalidConfig: a setting that cannot work.
	ErrInvalidConfig = errors.New("invalid encrypt config")
)

// NoKeyError is an [ErrNoKey].
type NoKeyError struct{ ID aggregate.ID }

func (e *NoKeyError) Error() string {
	return fmt.Sprintf("%v: %s has none: use the table of keys that it was written with", ErrNoKey, e.ID)
}
func (e *NoKeyError) Is(target error) bool { return target == ErrNoKey }

// ConfigError is an [ErrInvalidConfig].
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string        { return fmt.Sprintf("encrypt config: %s %s", e.Field, e.Reason) }
func (e *ConfigError) Is(target error) bool { return target == ErrInvalidConfig }
