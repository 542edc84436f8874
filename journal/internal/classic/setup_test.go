package classic

import (
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/layouttest"
)

// engineOf returns an engine without a client, for functions that make no requests.
func engineOf(change ...func(*engine.Settings)) *engine.Engine {
	return layouttest.Engine(nil, Kind, change...)
}

func layoutOf(e *engine.Engine) *layout { return e.Layout.(*layout) }
