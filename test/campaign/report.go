package campaign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Kind says which rule a finding breaks. Each harness has its own.
type Kind string

// Finding is a violation of a rule.
type Finding struct {
	Kind Kind
	At   time.Duration // since the start of a world with its own clock
	Text string
}

func (f Finding) String() string {
	if f.At == 0 {
		return fmt.Sprintf("%s: %s", f.Kind, f.Text)
	}
	return fmt.Sprintf("%v %s: %s", f.At, f.Kind, f.Text)
}

// Report holds the results of a world.
type Report struct {
	// Count counts commits in the journal, or deliveries.
	Count    int
	Events   int // committed events
	Findings []Finding
	// Virtual is the duration of a world with its own clock.
	Virtual time.Duration
	// Seen counts events of the world, so that a reader notices when something never happened.
	Seen map[string]int
	// Plan describes the settings of the world.
	Plan string
	// Trace is the end of the list of all events, if there is one.
	Trace []byte
}

// add adds the results of another world.
func (r *Report) add(other Report) {
	r.Count += other.Count
	r.Events += other.Events
	r.Virtual += other.Virtual
	r.Findings = append(r.Findings, other.Findings...)
	if r.Seen == nil {
		r.Seen = map[string]int{}
	}
	for what, n := range other.Seen {
		r.Seen[what] += n
	}
}

func (r *Report) found(k Kind) (n int) {
	for _, f := range r.Findings {
		if f.Kind == k {
			n++
		}
	}
	return n
}

// Ranking lists how often each thing was seen, the most frequent first, so that a reader notices
// when something never happened.
func Ranking(seen map[string]int) string {
	var all []string
	for _, what := range slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(a, b))
	}) {
		all = append(all, fmt.Sprint(what, " ", seen[what]))
	}
	return strings.Join(all, ", ")
}
