package journaltype

import "strings"

// Layout selects how a journal stores events and snapshots in its tables. It is chosen when the
// tables are created, and never changes.
type Layout string

// Classic is the layout of the event-store-adapter family: the latest snapshot is in the head, and
// the snapshot table has an index by aggregate.
const Classic Layout = "classic"

// Packed is the layout with one item for each commit. Only programs of this module can use such
// tables. A commit of a few small events costs two write units, a fifth of its cost in the layout
// [Classic]. The first commit of an aggregate costs one more; see docs/reference/cost.md.
const Packed Layout = "packed"

// constant returns the name of a layout in Go.
func (l Layout) constant() string { return "journal." + strings.ToUpper(string(l[:1])) + string(l[1:]) }
