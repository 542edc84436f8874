package sim

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/draw"
)

// policy says what a group does with an event that keeps failing.
type policy string

const (
	blocks policy = "block"
	skips  policy = "skip"
	stops  policy = "stop"
	parks  policy = "park"
)

// failurePlan says which events of a group are poisoned, and what the group does with them.
// Poisoned events fail until they are repaired.
type failurePlan struct {
	policy   policy
	attempts int
	poison   float64 // probability of an event
}

func newFailurePlan(r *rand.Rand, p *plan, g groupPlan) failurePlan {
	f := failurePlan{policy: draw.Pick(r, blocks, blocks, blocks, skips, parks, stops), attempts: draw.Pick(r, 1, 1, 2, 3)}
	switch {
	case p.sabotage == Unstop:
		f.policy = stops
	case p.sabotage.ofSkips():
		f.policy = skips
	case g.handlers.sagas && f.policy == skips:
		// A saga may have taken a step on a skipped event, and the oracle would not know which of
		// its commands were sent.
		f.policy = parks
	}
	if f.policy == blocks {
		return failurePlan{policy: blocks}
	}
	// The fewer events there are, the longer a group waits for each.
	poisoned := map[policy]float64{skips: draw.Pick(r, 5.0, 20, 60), parks: draw.Pick(r, 3.0, 10), stops: draw.Pick(r, 1.0, 3)}[f.policy]
	events := float64(p.commits*(1+p.commit)) / 2
	f.poison = min(0.05, poisoned/events)
	// Events also fail by chance. The number of attempts must be so high that few of them are given
	// up for that reason.
	chance := g.handlers.nack
	if g.handlers.sagas {
		chance = 0.5 // of any of its commands
	}
	for events*math.Pow(chance, float64(f.attempts)) > poisoned {
		f.attempts++
	}
	return f
}

// setting returns the policy as a setting of the subscriber.
func (f failurePlan) setting() subscriber.FailurePolicy {
	switch f.policy {
	case skips:
		return subscriber.Skip(f.attempts)
	case stops:
		return subscriber.Stop(f.attempts)
	case parks:
		return subscriber.Park(f.attempts)
	default:
		return subscriber.Block()
	}
}

// waits reports whether an operator has to decide before the group continues.
func (f failurePlan) waits() bool { return f.policy == stops || f.policy == parks }

func (p *plan) anybodyWaits() bool {
	for _, g := range p.groups {
		if g.failures.waits() {
			return true
		}
	}
	return false
}

// isPoisoned reports whether the handlers of a group fail on an event. Events that wait for an
// operator are repaired at the end of the storm at the latest.
func (w *world) isPoisoned(group *groupPlan, s stream, number uint64) bool {
	f := group.failures
	if f.poison == 0 || f.waits() && w.isCalm() {
		return false
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(s.String()))
	_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, number))
	_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, w.Seed^w.Number<<32))
	if !(draw.New(hash.Sum64(), number).Float64() < f.poison) {
		return false
	}
	_, repaired := w.repaired.Load(handledKey{s.group, source{s.topic, s.id, number}})
	return !repaired
}

// repair ends the failures of an event.
func (w *world) repair(s stream, number uint64) {
	w.repaired.Store(handledKey{s.group, source{s.topic, s.id, number}}, true)
}
