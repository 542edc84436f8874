package journal

import (
	"context"

	"github.com/millrace-dev/millrace/internal/units"
)

// Units counts requests to DynamoDB and the capacity units that they consumed, as DynamoDB reports
// them. [CountUnits] creates one. It is safe for concurrent use, even while requests are made.
type Units struct{ counter *units.Counter }

// CountUnits returns a derived context, and the units of requests that are made with it. Requests
// with contexts that are derived from it count too. If ctx comes from CountUnits itself, the
// earlier Units count them as well.
//
// All requests of a [Journal] count. So the requests of repositories, publishers, subscribers and
// package groups count. The requests of packages process, projection/readmodel and encrypt count
// too, although they use their own clients. Requests that create tables, and requests of
// projections and of package dedup, do not count. Background work counts if it was started with the
// context.
//
// With such a context each request asks DynamoDB for the consumed capacity, which costs nothing. A
// failed request counts as a request, but its capacity does not count, because the reply does not
// contain it: a false condition consumes write units, and so may a write whose reply was lost. If
// the SDK repeats a request, it counts once, with the capacity of the last attempt.
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

// ErrUnitLimit reports that a request was not sent because of [Units.LimitRead].
var ErrUnitLimit = units.ErrLimit

// LimitRead makes requests fail with [ErrUnitLimit] after Read has reached this number of units.
// Use it to bound long reads, such as a scan with a filter. Requests that are under way continue,
// so Read can exceed the limit by what they consume. Default: 0, which is no limit.
func (u *Units) LimitRead(most float64) { u.counter.Limit(most) }

// Requests returns the number of requests so far, including those that failed.
func (u *Units) Requests() int {
	_, _, requests := u.counter.Totals()
	return requests
}
