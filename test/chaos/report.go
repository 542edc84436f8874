package chaos

import "fmt"

// Kind says which guarantee a finding breaks.
type Kind string

const (
	// Lost is an event that was not acked in the group "plain", or acked with another content, or
	// that was acknowledged to its writer and is not in the journal.
	Lost Kind = "lost"
	// Reordered is an event that was skipped, was delivered again without a reason, or was handled
	// by two members at a time.
	Reordered Kind = "reordered"
	// Effects is a row of the read model that differs from the events.
	Effects Kind = "effects wrong"
	// Unruly is a member that ended by itself, or did not end when it was asked to.
	Unruly Kind = "unruly"
)

// Finding is a violation of a rule.
type Finding struct {
	Kind Kind
	Text string
}

// Report holds the results of a run.
type Report struct {
	Kills      int // by SIGKILL
	Deliveries int // in all groups, including repeated ones
	// Seen counts events of the run, so that a reader notices when something never happened.
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

// Summary returns the last line of a run.
func (r Report) Summary(seed uint64) string {
	return fmt.Sprintf("chaos kills=%d deliveries=%d lost=%d reordered=%d effects_wrong=%d seed=%d",
		r.Kills, r.Deliveries, r.Count(Lost), r.Count(Reordered), r.Count(Effects), seed)
}
