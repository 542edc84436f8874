package packed

import (
	"testing"

	"github.com/millrace-dev/millrace/internal/layouttest"
)

func TestLayout(t *testing.T) {
	t.Parallel()
	layouttest.Run(t, Kind)
}
