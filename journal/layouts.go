package journal

import (
	"fmt"
	"strings"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/journal/internal/classic"
	"github.com/millrace-dev/millrace/journal/internal/packed"
)

// layouts lists all layouts. [Open] tries them in this order if config names none.
var layouts = []engine.Kind{classic.Kind, packed.Kind}

// checkLayout returns an error if the layout is unknown, or if it refuses one of the given options.
func checkLayout(layout Layout, given ClassicOptions) error {
	constants := make([]string, len(layouts))
	for i, kind := range layouts {
		if kind.Name == layout {
			if kind.Check == nil {
				return nil
			}
			return kind.Check(given)
		}
		constants[i] = "journal." + strings.ToUpper(string(kind.Name[:1])) + string(kind.Name[1:])
	}
	return &ConfigError{Field: "Layout", Reason: fmt.Sprintf("is %q: use %s", string(layout), strings.Join(constants, " or "))}
}
