package soak

import (
	"fmt"
	"sync"

	"github.com/millrace-dev/millrace/journal"
)

// truth is what writers were told, kept where no fault can reach it. It is safe for concurrent use.
type truth struct {
	mu       sync.Mutex
	commands map[uint64]*outcome
	next     uint64
	// floors are the versions that each aggregate is known to have reached.
	floors map[string]uint64
	// digests are those of the states that loads, saves and decisions saw, by version.
	digests  map[string]map[uint64]uint64
	counts   map[string]int
	findings []Finding
	// orders are the commands that also put a row into the outbox.
	orders map[uint64]bool
	pairs  []pair
}

// Kind is the invariant that a finding is about, as DESIGN and the last line of a run name it.
type Kind string

// The kinds of findings.
const (
	Lost  Kind = "lost"  // acknowledged and not there
	Gap   Kind = "gap"   // a number missing or given twice, or a head that is not at the last event
	Wrong Kind = "wrong" // a load that is no fold of 1..n or older than it may be, what was refused and is there, an undocumented error
	Stuck Kind = "stuck" // no command ended or began for a long time
)

// Finding is something that must not be.
type Finding struct {
	Kind Kind
	Text string
}

// outcome is what a command was told about its events: the first sure ones are written, the next
// maybe ones are or are not, all others are not.
type outcome struct {
	id          string
	sure, maybe int
	first       uint64 // the number of its first event, if it was told
	split       bool   // it may take several transactions
	unknown     *journal.OutcomeUnknownError
}

func newTruth() *truth {
	return &truth{commands: map[uint64]*outcome{}, floors: map[string]uint64{}, digests: map[string]map[uint64]uint64{}, counts: map[string]int{}, orders: map[uint64]bool{}}
}

func (t *truth) order(command uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.orders[command] = true
}

// outcome is what a command has been told so far.
func (t *truth) outcome(command uint64) outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *t.commands[command]
}

// command returns a new command's number; until it is told otherwise all of its events may be
// written or not.
func (t *truth) command(id string) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	t.commands[t.next] = &outcome{id: id, maybe: maxCount, split: true}
	return t.next
}

// settle keeps what a command was told.
func (t *truth) settle(command uint64, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.id = t.commands[command].id
	t.commands[command] = &o
	if o.sure > 0 {
		t.raise(o.id, max(o.first+uint64(o.sure)-1, uint64(o.sure))) //nolint:gosec // not negative
	}
}

func (t *truth) raise(id string, version uint64) { t.floors[id] = max(t.floors[id], version) }

// floor is the version that a load which begins now must not fall behind.
func (t *truth) floor(id string) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.floors[id]
}

// observe keeps what a state was at a version.
func (t *truth) observe(how, id string, version uint64, s state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.Count != version {
		t.find(Wrong, "%s gave thing %s at version %d with a state of %d events", how, id, version, s.Count)
	}
	if version == 0 {
		return
	}
	if t.digests[id] == nil {
		t.digests[id] = map[uint64]uint64{}
	}
	if before, seen := t.digests[id][version]; seen && before != s.digest() {
		t.find(Wrong, "%s gave thing %s at version %d in another state than somebody saw before", how, id, version)
	}
	t.digests[id][version] = s.digest()
	t.raise(id, version)
}

// report keeps a finding.
func (t *truth) report(kind Kind, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.find(kind, format, args...)
}

func (t *truth) find(kind Kind, format string, args ...any) {
	t.findings = append(t.findings, Finding{kind, fmt.Sprintf(format, args...)})
}

// see counts something worth knowing that it happened.
func (t *truth) see(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
}

// count is how many commands there were.
func (t *truth) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.commands)
}
