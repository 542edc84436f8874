package engine

// Interference is what a fault does inside an operation. Nil is none.
type Interference struct {
	// Withheld are the items of a batch that come back unprocessed, in the order of
	// [Database.Touches].
	Withheld []bool

	// What follows slows a transaction of writes down so that others meet it on its way. Without it
	// a transaction happens at once. While it is under way its items are held: others that would
	// write them, or read them in a transaction, meet a conflict; plain reads see each item as it
	// is. A pause may use the database.

	// Prepared runs when all conditions hold and nothing is written.
	Prepared func()
	// Applied runs after each write with the number of those that are made.
	Applied func(writes int)
	// Order is that of the actions by their indexes. Nil is the order of the request.
	Order []int
}

func (f *Interference) pauses() bool { return f != nil && (f.Prepared != nil || f.Applied != nil) }

func (f *Interference) withholds(i int) bool { return f != nil && i < len(f.Withheld) && f.Withheld[i] }
