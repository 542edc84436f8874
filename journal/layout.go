package journal

import "fmt"

// Layout says where the snapshots of a journal are stored. It is chosen when the tables are
// created.
type Layout string

const (
	// Classic is the layout of the event-store-adapter family: the latest snapshot is in the head,
	// and the snapshot table has an index by aggregate. It is the default.
	Classic Layout = "classic"

	// Lean stores the latest snapshot in a row of its own and has no index by aggregate. DynamoDB
	// bills a write by the size of the whole item, so in the classic layout every commit pays for
	// the state, whether or not it stores it again. In the lean layout only a commit that stores a
	// snapshot pays for it. A load reads two rows with one request, one read unit more.
	//
	// Programs of the family cannot use lean tables, as they look for the state in the head.
	// [Adopt] cannot make tables lean.
	Lean Layout = "lean"
)

func (l Layout) validate() error {
	if l != Classic && l != Lean {
		return &ConfigError{Field: "Layout", Reason: fmt.Sprintf("is %q: use journal.Classic or journal.Lean", string(l))}
	}
	return nil
}
