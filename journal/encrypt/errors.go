package encrypt

import (
	"errors"
	"fmt"
)

// Sentinels for errors.Is. That of a key that was destroyed is [journal.ErrKeyDestroyed].
var (
	// ErrNoKey reports that an aggregate's key is missing, without a tombstone of one, or is not
	// the key that encrypted the payload. The table of keys is not the one that the payload was
	// written with, or has lost the key. An append that fails with it has written nothing.
	ErrNoKey = errors.New("no encryption key")
	// ErrForged reports that a payload or a wrapped key does not decrypt. It was changed, moved
	// from another place, or given another event type; or, for a key, it was wrapped with another
	// wrapping key.
	ErrForged = errors.New("does not decrypt")
)

// ConfigError reports a setting that cannot work.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("encrypt config: %s %s", e.Field, e.Reason) }
