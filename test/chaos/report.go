package chaos

import "fmt"

// Kind says which promise a finding breaks.
type Kind string

const (
	// Lost is an event that was not acked in the group "plain", or not as it was written, or that
	// was acknowledged to its writer and is not in the journal.
	Lost Kind = "lost"
	// Reordered is an event that was skipped, came again without a reason, or was with two members
	// at a time.
	Reordered Kind = "reordered"
	// Effects is a row of the read model that is not what the events make.
	Effects Kind = "effects wrong"
	// Unruly is a member that ended by itself, or did not end when it was told to.
	Unruly Kind = "unruly"
)

// Finding is something that must not be.
type Finding struct {
	Kind Kind
	Text string
}

// Report is what came of a run.
type Report struct {
	Kills      int // by SIGKILL
	Deliveries int // in all groups, with those that came again
	// Seen counts what happened, so that a run in which something never did can be told.
	Seen     map[string]int
	Findings []Finding
}

// Count returns the number of findings of a kind.
func (r Report) Count(k Kind) (n int) {
	for _, f := range r.Findings {
		if f.Kind == k {
			n++
		}
	}
	return n
}

// Summary is the line that a run ends with.
func (r Report) Summary(seed uint64) string {
	return fmt.Sprintf("chaos kills=%d deliveries=%d lost=%d reordered=%d effects_wrong=%d seed=%d",
		r.Kills, r.Deliveries, r.Count(Lost), r.Count(Reordered), r.Count(Effects), seed)
}
