package packed

import (
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/layouttest"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

var kind = engine.Kind{Name: journaltype.Packed, New: New, Check: Check}

// layoutOf returns a layout without a client, for functions that make no requests.
func layoutOf() *layout { return layouttest.Engine(nil, kind).Layout.(*layout) }
