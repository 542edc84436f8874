package journal

import (
	"context"

	"github.com/millrace-dev/millrace/internal/units"
)

// Units counts requests to DynamoDB and the capacity units that they consumed, as DynamoDB reports
// them. [CountUnits] returns one. It is safe for concurrent use, also while requests are made.
type Units struct{ counter *units.Counter }

// CountUnits returns a context, and what the requests that are made with it consume. Requests of
// contexts that are derived from it count too. If ctx comes from CountUnits itself, the earlier
// Units count them as well.
//
// These requests count: all of a [Journal], and so of everything that reads and writes through one,
// such as repositories, publishers, subscribers and package groups; and those of packages process,
// projection/readmodel and encrypt through their own clients. The requests that create tables, and
// those of projections and of package dedup, do not count. What runs in the background counts if
// it was started with the context.
//
// With such a context each request asks DynamoDB for the consumed capacity, which costs nothing. A
// request that fails counts as a request, and its capacity does not count, as the reply does not
// say it: a false condition consumes write units, and so may a write whose reply was lost. Attempts
// that the SDK repeats count as one request, with the capacity of the last attempt.
func CountUnits(ctx context.Context) (context.Context, *Units) {
	ctx, counter := units.Count(ctx)
	return ctx, &Units{counter}
}

// Read returns the read units so far. An eventually consistent read of 4 KB is half a unit.
func (u *Units) Read() float64 {
	read, _, _ := u.counter.Totals()
	return read
}

// Write returns the write units so far, including those of indexes.
func (u *Units) Write() float64 {
	_, write, _ := u.counter.Totals()
	return write
}

// ErrUnitLimit is the error of requests beyond [Units.LimitRead].
var ErrUnitLimit = units.ErrLimit

// LimitRead makes requests fail with [ErrUnitLimit] once Read has reached a number of units. It
// bounds reads that may go on for long, such as those of a table with a filter. Requests that are
// under way are not ended, so Read may get above the limit by what they consume. Default: 0, which
// is no limit.
func (u *Units) LimitRead(most float64) { u.counter.Limit(most) }

// Requests returns the number of requests so far, including those that failed.
func (u *Units) Requests() int {
	_, _, requests := u.counter.Totals()
	return requests
}
