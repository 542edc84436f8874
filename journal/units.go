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

// Requests returns the number of requests so far, including those that failed.
func (u *Units) Requests() int {
	_, _, requests := u.counter.Totals()
	return requests
}

// LimitUnits returns a context with which no request is sent once requests with it have consumed so
// many read units: those fail with [ErrUnitLimit]. The request that reaches the limit still succeeds.
// It is for reads. A write that takes several requests may be left unfinished.
func LimitUnits(ctx context.Context, read float64) context.Context { return units.Limit(ctx, read) }
