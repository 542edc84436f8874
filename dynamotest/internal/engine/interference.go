package engine

// Interference holds the hooks of faults inside of an operation. Nil means none.
type Interference struct {
	// Withheld marks the items of a batch that come back unprocessed, in the order of
	// [Database.Touches].
	Withheld []bool

	// Stale makes an eventually consistent read of a table see an earlier state. If there are
	// several, the read sees the earliest of their states.
	Stale []Staleness

	// The fields below slow down a transaction of writes, so that other calls meet it while it is
	// under way. Without them a transaction is instantaneous. While it is under way it holds its
	// items: other writes of them, and reads in transactions, get a conflict. Plain reads see the
	// current items. A hook may use the database.

	// Prepared runs after all conditions were true and before anything is written.
	Prepared func()
	// Applied runs after each write, with the number of writes so far.
	Applied func(writes int)
	// Order is the order of the actions by their indexes. Nil means the order of the request.
	Order []int
}

func (f *Interference) pauses() bool { return f != nil && (f.Prepared != nil || f.Applied != nil) }

func (f *Interference) withholds(i int) bool { return f != nil && i < len(f.Withheld) && f.Withheld[i] }
