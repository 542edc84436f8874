package packed

import (
	"github.com/millrace-dev/millrace/internal/layouttest"
)

// layoutOf returns a layout without a client, for functions that make no requests.
func layoutOf() *layout { return layouttest.Engine(nil, Kind).Layout.(*layout) }
