package order

import "github.com/millrace-dev/millrace/examples/internal/text"

// NameError reports that the name of a restaurant or a dish is not readable.
type NameError struct{ Of, Reason string }

func (e NameError) Error() string { return e.Of + ": " + e.Reason }

// readable returns a [NameError] for a name that is not readable.
func readable(of, name string) error {
	if reason := text.Fault(name); reason != "" {
		return NameError{of, reason}
	}
	return nil
}
