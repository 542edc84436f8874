package millrace

import (
	"errors"
	"fmt"
)

// ConfigError reports an invalid setting or argument. Field names it, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("millrace: %s %s", e.Field, e.Reason) }

// Errors of this package, for errors.Is. [*ConfigError] is for errors.As.
var (
	// ErrStarted reports that the App runs or has run, also in bursts. An App runs once, or only in
	// bursts; add everything before.
	ErrStarted = errors.New("the app has been started, or has run a burst: open another App")
	// ErrNotRunning reports that the App has not started yet, is stopping, or has stopped.
	ErrNotRunning = errors.New("the app does not run")
)
