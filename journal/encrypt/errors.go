package encrypt

import (
	"errors"
	"fmt"
)

// Sentinels for errors.Is. That of a key that was destroyed is [journal.ErrKeyDestroyed].
var (
	// ErrNoKey reports an encrypted payload whose aggregate has no key, and no tombstone of one.
	// The table of keys is not the one that it was written with, or was lost. Nothing was written.
	ErrNoKey = errors.New("no encryption key")
	// ErrForged reports that a payload or a wrapped key does not decrypt. It was changed, moved
	// from another place, or encrypted with another key.
	ErrForged = errors.New("does not decrypt")
)

// ConfigError reports a setting that cannot work.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("encrypt config: %s %s", e.Field, e.Reason) }
