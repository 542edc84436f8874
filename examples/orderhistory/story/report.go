package story

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Report holds the results of a story.
type Report struct {
	Orders, Contended int
	Accepted          int64 // commands
	Refused           int64 // commands that a status did not allow
	// Commands that were sent again, after no reply or on purpose.
	SentAgain int64
	Throttled int64 // requests to the database
	// Messages that the policies handled again, out of order.
	Repeated int64
	// Events that were old when they were replayed late.
	Late      uint64
	Committed uint64
	Delivered []uint64 // messages, for each consumer
	// Events whose effect a consumer has committed.
	Applied uint64
	// Events that were delivered again and dropped.
	Duplicates        uint64
	LagMedian, LagMax time.Duration
	CaughtUp          time.Duration // after the last command
	Pages, Questions  int           // of the REST API
	Took              time.Duration
	// Differences between the history and the replayed journal.
	Differences []string
}

// count adds the counts of the consumers. An applied event is missing in them only if its reply was
// lost, and no event may count twice.
func (r *Report) count(t totals) {
	r.Delivered, r.Applied, r.Duplicates = t.delivered, t.applied, t.duplicates
	if r.Applied > r.Committed || r.delivered() < r.Applied {
		r.Differences = append(r.Differences, fmt.Sprintf(
			"%d events were committed, %d delivered and %d applied", r.Committed, r.delivered(), r.Applied))
	}
}

func (r *Report) delivered() (n uint64) {
	for _, d := range r.Delivered {
		n += d
	}
	return n
}

func (r *Report) print(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(table, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("orders", "%d, %d of them changed by two people at once", r.Orders, r.Contended)
	row("commands", "%d accepted, %d refused for a status, %d sent again", r.Accepted, r.Refused, r.SentAgain)
	row("throttled", "%d calls of the database", r.Throttled)
	row("committed", "%d events", r.Committed)
	row("delivered", "%d messages: %d, %d after a restart, %d after a crash",
		r.delivered(), r.Delivered[0], r.Delivered[1], r.Delivered[2])
	if r.Applied < r.Committed {
		row("applied", "%d, and %d whose reply a restart cut off", r.Applied, r.Committed-r.Applied)
	} else {
		row("applied", "%d", r.Applied)
	}
	row("duplicates", "%d dropped", r.Duplicates)
	row("late", "%d messages handled again out of turn, %d old events replayed", r.Repeated, r.Late)
	row("lag", "%s in the median, %s at most, caught up %s after the last command",
		round(r.LagMedian), round(r.LagMax), round(r.CaughtUp))
	row("queried", "%d orders, and %d pages for %d questions", r.Orders, r.Pages, r.Questions)
	row("time", "%s", round(r.Took))
	_ = table.Flush()

	const most = 20
	for _, difference := range r.Differences[:min(most, len(r.Differences))] {
		fmt.Fprintf(out, "WRONG: %s\n", difference)
	}
	if more := len(r.Differences) - most; more > 0 {
		fmt.Fprintf(out, "and %d more\n", more)
	}
	if len(r.Differences) == 0 {
		fmt.Fprintln(out, "Every order's history is exactly right.")
	}
}

func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Millisecond)
}
