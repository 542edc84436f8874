package journal

import "fmt"

// Layout says where the snapshots of a journal are. It is chosen when the tables are made, and all openers must agree.
type Layout string

const (
	// Classic is the layout of the event-store-adapter family: the latest snapshot is in the head, and the snapshot
	// table has an index by aggregate. It is the default.
	Classic Layout = "classic"

	// Lean gives the latest snapshot a row of its own and leaves that index out. DynamoDB bills a write by the size of
	// the whole item, so in the classic layout every commit pays for the state, whether or not it stores it anew; here
	// only those that do. A load reads two rows with one request, one unit more.
	//
	// Given up are the programs of the family, which look for the state in the head, and [Journal.SnapshotBefore] for
	// rows that the head does not list. [Adopt] cannot make tables lean.
	Lean Layout = "lean"
)

func (l Layout) validate() error {
	if l != Classic && l != Lean {
		return &ConfigError{Field: "Layout", Reason: fmt.Sprintf("is %q: use journal.Classic or journal.Lean", string(l))}
	}
	return nil
}
