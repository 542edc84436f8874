package order

import "github.com/millrace-dev/millrace/examples/internal/text"

// NameError says that the name of a restaurant or a dish cannot be read.
type NameError struct{ Of, Reason string }

func (e NameError) Error() string { return e.Of + ": " + e.Reason }

// readable returns a [NameError] for a name that cannot be read.
func readable(of, name string) error {
	if reason := text.Fault(name); reason != "" {
		return NameError{of, reason}
	}
	return nil
}
