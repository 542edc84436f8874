package sim

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/draw"
)

// Disruption is a kind of trouble that some worlds have in addition to that of every world.
type Disruption string

// The disruptions.
const (
	// Throttling: for minutes, many of the requests of one kind are refused.
	Throttling Disruption = "throttle"
	// Suspension: processes are stopped for longer than their lease while they write, and then
	// continue.
	Suspension Disruption = "suspend"
	// Edits: operators skip events, reset aggregates and unpark aggregates, several of one shard.
	Edits Disruption = "edit"
	// Lateness: requests that members have sent before such an edit arrive after it.
	Lateness Disruption = "late"
	// Clocks: clocks of members and writers are about a day ahead or behind for a while.
	Clocks Disruption = "clock"
	// Imports: histories that are older than the cursors are written while the groups run.
	Imports Disruption = "import"
	// IndexDelays: entries appear in the index after 10 to 100 ms, and some after the last trailing
	// read.
	IndexDelays Disruption = "index"
	// Outages: handlers of half of the aggregates fail until these are listed as behind, then those
	// of the other half. Requests to remove entries are late. Some arrive when the owner has listed
	// the aggregate again and is about to crash.
	Outages Disruption = "outage"
	// Truncations: operators remove events of aggregates with a later snapshot, including events
	// that groups have not handled yet.
	Truncations Disruption = "truncate"
	// Deletions: operators delete some aggregates permanently. Writers do not know.
	Deletions Disruption = "delete"
	// Exports: the journal is exported to archives, in several attempts.
	Exports Disruption = "export"
	// Rebuilds: a read model is cleared and built again, by resets and removals of its group, while
	// transactions of its handlers are late.
	Rebuilds Disruption = "rebuild"
	// Hints: processes announce their commits to each other. Hints are lost, late and repeated,
	// overtake each other, and some are forged. In half of these worlds idle shards are polled
	// rarely.
	Hints Disruption = "hint"
	// Bursts: each process of a group works in bursts in every second life. The bursts get the
	// hints of [Hints].
	Bursts Disruption = "burst"
	// Staleness: eventually consistent reads return earlier items. Most of these reads are those of
	// [Bursts] and of reconciliations, which are frequent here.
	Staleness Disruption = "stale"
)

// Disruptions lists all disruptions.
var Disruptions = []Disruption{Throttling, Suspension, Edits, Lateness, Clocks, Imports, IndexDelays, Outages, Truncations, Deletions, Exports, Rebuilds, Hints, Bursts, Staleness}

// noDisruptions is the value of [World].Disrupt for a world without disruptions.
const noDisruptions = "none"

// disruptionPlan says which disruptions a world has, and how strong they are.
type disruptionPlan struct {
	kinds     []Disruption
	throttles []throttle
	suspends  time.Duration // average time between two suspensions
	edits     time.Duration // average time between two edits of an editor
	imports   int           // number of pages of history
	exports   int           // number of archives
	rebuilds  int           // of a read model
	hints     hintPlan
	bursts    burstPlan
	// Average time between two removals of an operator.
	removes time.Duration
	// How long the handlers of some aggregates fail.
	outage time.Duration
	// straggling is the probability that a removal of an entry is held back until its aggregate is
	// listed again. For the first few of them, in the number of strikes, the aggregate fails again
	// at once, and its owner crashes after that.
	straggling float64
	strikes    int
	delays     []indexDelay
	stale      staleness
	// measures says that at the end the world measures how soon events are delivered.
	measures bool
}

// staleness is the age of eventually consistent reads.
type staleness struct {
	most   time.Duration
	chance float64 // 0 for reads that are not stale
}

// indexDelay is the delay of some entries in the tail index.
type indexDelay struct {
	least, most time.Duration
	chance      float64
}

func (d disruptionPlan) has(kind Disruption) bool { return slices.Contains(d.kinds, kind) }

// disrupt draws the disruptions of a world. They have their own source of random numbers, so that
// they do not change the other random choices of the world.
func (p *plan) disrupt(r *rand.Rand, w World) error {
	kinds, err := w.disruptions(r)
	if err != nil {
		return err
	}
	d := &p.disruption
	d.kinds = kinds
	if needed := p.sabotage.disruption(); needed != "" && !d.has(needed) {
		d.kinds = append(d.kinds, needed)
	}
	if d.has(Throttling) {
		d.throttles = newThrottles(r, w.Small)
		for _, t := range d.throttles {
			p.duration = max(p.duration, t.lasts*2/3) // so that there are requests to throttle
		}
	}
	if d.has(Suspension) {
		d.suspends = seconds(r, 4, 20)
		p.duration = max(p.duration, 4*p.longestLease())
	}
	if d.has(Lateness) && !d.has(Edits) {
		d.kinds = append(d.kinds, Edits)
	}
	if d.has(Edits) {
		d.edits = seconds(r, 1, 6)
		p.duration = max(p.duration, 20*time.Second)
	}
	if d.has(Imports) {
		d.imports = 2 + r.IntN(8)
	}
	if d.has(Deletions) {
		p.aggregates = max(p.aggregates, 16) // so that enough aggregates are left
	}
	if d.removals() != nil {
		d.removes = seconds(r, 1, 6)
		p.duration = max(p.duration, 20*time.Second)
	}
	if d.has(Exports) {
		d.exports = 1 + r.IntN(2)
	}
	if d.has(Rebuilds) {
		d.rebuilds = 2 + r.IntN(4)
	}
	if d.has(IndexDelays) {
		d.delays = []indexDelay{{indexFrom, indexTo, 0.9}, {p.trailing * 3 / 2, p.trailing * 3, draw.Pick(r, 0.002, 0.02)}}
	}
	if p.sabotage == Unrevise {
		p.linger()
	}
	if d.has(Outages) {
		// An aggregate is listed after the last trailing read.
		d.outage = p.trailing + seconds(r, 4, 12)
		p.duration = max(p.duration, 4*d.outage)
		for i := range p.groups {
			c := &p.groups[i].config
			c.Timing.BehindAfter, c.NackResendSleep, c.MaxNackResendSleep = time.Second, 500*time.Millisecond, 2*time.Second
		}
		d.straggling, d.strikes = draw.Pick(r, 0.3, 1), draw.Pick(r, 0, 1, 2)
	}
	if d.has(Staleness) {
		d.stale = staleness{draw.Pick(r, 50*time.Millisecond, 300*time.Millisecond, time.Second), draw.Pick(r, 0.05, 0.3, 1)}
		if !d.has(Bursts) {
			d.kinds = append(d.kinds, Bursts)
		}
		for i := range p.groups {
			p.groups[i].config.Timing.ReconcileInterval = seconds(r, 3, 8)
		}
	}
	if d.has(Bursts) {
		if !d.has(Hints) {
			d.kinds = append(d.kinds, Hints)
		}
		d.bursts = newBurstPlan(r)
		p.duration, p.troubles.every = max(p.duration, 30*time.Second), min(p.troubles.every, 8*time.Second)
	}
	if d.has(Hints) {
		d.hints = newHintPlan(r)
	}
	d.measures = len(d.kinds) > 0
	p.provoke()
	if d.measures && !p.wrongClocks && !d.has(Clocks) && !d.has(Imports) && !d.has(IndexDelays) {
		p.withoutReconciliation(r)
	}
	return nil
}

// provoke makes the events happen that show the sabotage.
func (p *plan) provoke() {
	switch p.sabotage {
	case Blink, Ignore:
		p.disruption.measures = true
		g := &p.groups[0]
		g.handlers.slow, g.handlers.sagas, g.failures = 0, false, failurePlan{policy: blocks}
		g.config.Failures, g.config.Timing.PollInterval, g.config.Timing.MaxPollInterval = g.failures.setting(), 100*time.Millisecond, time.Second
		if p.sabotage == Ignore { // nothing makes members distrust hints before the measurement
			p.disruption.hints, p.quality.network, p.faults = hintPlan{rare: 10 * time.Second}, draw.Network{}, 0
		}
	case Overtake, Presume: // only the tail shows the events
		p.wrongClocks = false
		p.disruption.hints.lost = 0.5
		p.neverReconcile()
	case Overlook, Unrevise:
		p.disruption.straggling, p.disruption.strikes = 1, 6
		p.wrongClocks = false
		p.disruption.delays = []indexDelay{{p.trailing / 8, p.trailing / 4, 0.1}}
		p.neverReconcile()
	}
}

func (p *plan) neverReconcile() {
	for i := range p.groups {
		p.groups[i].config.Timing.ReconcileInterval = -1
	}
}

// linger makes few events happen for a long time, while members keep their shards for long.
func (p *plan) linger() {
	p.commits, p.commit, p.aggregates, p.shards, p.writers = 120, 2, 16, 2, 2
	p.trailing, p.duration = 4*time.Second, 90*time.Second
	p.troubles.every, p.troubles.down = 2*time.Minute, time.Second
	for i := range p.groups {
		g := &p.groups[i]
		g.handlers.sagas, g.handlers.projection, g.handlers.runs = false, false, false
		g.failures = failurePlan{policy: blocks}
		g.config.Failures, g.config.Timing.TrailingDelay = g.failures.setting(), p.trailing
	}
}

// isOut reports whether the handlers of a group fail on an aggregate now. Groups that skip or park
// an event have no outages, since they would skip or park all events.
func (w *world) isOut(g *groupPlan, s stream) bool {
	period := w.plan.disruption.outage
	if period == 0 || g.failures.policy != blocks || w.isCalm() {
		return false
	}
	if w.isStricken(s) {
		return true
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(s.String()))
	return (uint64(hash.Sum32())+uint64(w.trace.now()/period))%2 == 0 //nolint:gosec // not negative
}

// withoutReconciliation disables reconciliation in half of the groups, so that they find events
// only by reads of the tail. No entry is later than the last trailing read. Some entries appear in
// the index well after the first trailing read.
func (p *plan) withoutReconciliation(r *rand.Rand) {
	p.disruption.delays = []indexDelay{{p.trailing / 8, p.trailing / 4, 0.02}}
	for i := range p.groups {
		if r.IntN(2) == 0 {
			p.groups[i].config.Timing.ReconcileInterval = -1
		}
	}
}

// misplaces reports whether events may be so far from their places in the tail that only a
// reconciliation of all aggregates finds them. The packed layout reconciles once a week or on
// demand.
func (p *plan) misplaces() bool {
	return p.layout == journal.Packed && (p.wrongClocks || p.disruption.has(Clocks) || p.disruption.has(Suspension))
}

// longestAbsence is the longest time for which a process is stalled or suspended.
func (p *plan) longestAbsence() time.Duration {
	if p.disruption.has(Suspension) {
		return max(p.troubles.stalls, p.longestLease()*5/2)
	}
	return p.troubles.stalls
}

// disruptions returns the requested disruptions, or draws some. A world with a sabotage has only
// the requested ones, because with more trouble it takes longer to find the sabotage.
func (w World) disruptions(r *rand.Rand) (kinds []Disruption, err error) {
	switch {
	case w.Disrupt == noDisruptions, w.Disrupt == "" && w.Sabotage != "":
		return nil, nil
	case w.Disrupt != "":
		for _, name := range strings.Split(w.Disrupt, ",") {
			if !slices.Contains(Disruptions, Disruption(name)) {
				return nil, fmt.Errorf("there is no disruption %q, only %v and %q", name, Disruptions, noDisruptions)
			}
			kinds = append(kinds, Disruption(name))
		}
		return kinds, nil
	}
	for _, kind := range Disruptions {
		if r.IntN(3) == 0 {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		kinds = append(kinds, draw.Pick(r, Disruptions...))
	}
	return kinds, nil
}

// between draws a duration between two limits.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + draw.UpTo(r, most-least)
}
