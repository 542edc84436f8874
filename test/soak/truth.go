package soak

import (
	"fmt"
	"sync"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/campaign"
)

// truth holds the results of the writers' calls, outside the database. It is safe for concurrent
// use.
type truth struct {
	mu       sync.Mutex
	commands map[uint64]*outcome
	next     uint64
	// floors are the versions that the aggregates are known to have reached.
	floors map[string]uint64
	// digests are the digests of the states that loads, saves and decisions saw, by version.
	digests  map[string]map[uint64]uint64
	counts   map[string]int
	findings []campaign.Finding
	// orders are the commands that also put a row into the outbox.
	orders map[uint64]bool
	pairs  []pair
}

// Kinds of findings, as in the last line of a run.
const (
	Lost campaign.Kind = "lost" // acknowledged, but not there
	// A missing or repeated number, or a head that is not at the last event.
	Gap campaign.Kind = "gap"
	// A load that does not follow from all events or is too old, a refused event that is there, or
	// an undocumented error.
	Wrong campaign.Kind = "wrong"
	Stuck campaign.Kind = "stuck" // no command ended or began for a long time
)

// outcome is the known outcome of a command's events: the first sure ones are written, the next
// maybe ones may be written, and the others are not.
type outcome struct {
	id          string
	sure, maybe int
	first       uint64 // the number of its first event, if known
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

// outcome returns the known outcome of a command.
func (t *truth) outcome(command uint64) outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	return *t.commands[command]
}

// command returns the number of a new command. Until its outcome is recorded, all of its events may
// be written or not.
func (t *truth) command(id string) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	t.commands[t.next] = &outcome{id: id, maybe: maxCount, split: true}
	return t.next
}

// record records the outcome of a command.
func (t *truth) record(command uint64, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.id = t.commands[command].id
	t.commands[command] = &o
	if o.sure > 0 {
		t.raise(o.id, max(o.first+uint64(o.sure)-1, uint64(o.sure))) //nolint:gosec // not negative
	}
}

func (t *truth) raise(id string, version uint64) { t.floors[id] = max(t.floors[id], version) }

// floor returns the version that a load which begins now must reach.
func (t *truth) floor(id string) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.floors[id]
}

// observe records a state at a version.
func (t *truth) observe(how, id string, version uint64, s state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.Count != version {
		t.find(Wrong, "%s returned thing %s at version %d with a state of %d events", how, id, version, s.Count)
	}
	if version == 0 {
		return
	}
	if t.digests[id] == nil {
		t.digests[id] = map[uint64]uint64{}
	}
	if before, seen := t.digests[id][version]; seen && before != s.digest() {
		t.find(Wrong, "%s returned thing %s at version %d in another state than a writer saw before", how, id, version)
	}
	t.digests[id][version] = s.digest()
	t.raise(id, version)
}

// report records a finding.
func (t *truth) report(kind campaign.Kind, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.find(kind, format, args...)
}

func (t *truth) find(kind campaign.Kind, format string, args ...any) {
	t.findings = append(t.findings, campaign.Finding{Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// see counts a notable event.
func (t *truth) see(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
}

// count returns the number of commands.
func (t *truth) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.commands)
}
