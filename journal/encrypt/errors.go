package encrypt

import (
	"errors"
	"fmt"
)

// Sentinels for errors.Is. See also [journal.ErrKeyDestroyed].
var (
	// ErrNoKey reports that the key of an aggregate is missing although it was not destroyed, or
	// that it is not the key that encrypted the payload. The table of keys is not the one with
	// which the payload was written, or it has lost the key. An append that fails with it has
	// written nothing.
	ErrNoKey = errors.New("no encryption key")
	// ErrForged reports that a payload or a wrapped key does not decrypt. It was changed, moved
	// from another place, or combined with another event type. A key may also have been wrapped
	// with another wrapping key.
	ErrForged = errors.New("does not decrypt")
)

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("encrypt config: %s %s", e.Field, e.Reason) }
