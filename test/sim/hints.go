package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/draw"
)

// hintPlan holds the random choices for hints.
type hintPlan struct {
	// Probabilities that a hint is lost, is late, comes again, and is followed by a forged one.
	lost, late, again, forged float64
	lateBy                    time.Duration
	rare                      time.Duration // interval of rare polls, 0 for normal polling
}

func newHintPlan(r *rand.Rand) hintPlan {
	return hintPlan{
		lost: draw.Pick(r, 0, 0, 0.01, 0.3), late: draw.Pick(r, 0, 0.1, 0.5), again: draw.Pick(r, 0, 0.1), forged: draw.Pick(r, 0.01, 0.1, 1),
		lateBy: draw.Pick(r, 100*time.Millisecond, 2*time.Second, 20*time.Second),
		rare:   draw.Pick(r, 0, 10*time.Second),
	}
}

// broker delivers hints about the commits of each process to the readers of the others.
type broker struct {
	world    *world
	plan     hintPlan
	random   *rand.Rand
	readers  []*life
	relaying bool // a commit is reported that nobody has made
}

// watch announces the commits through a journal.
func (b *broker) watch(j *journal.Journal) {
	j.Internal().Watch("", func(id aggregate.ID, version uint64) { b.announce(j, id, version) })
}

// join makes a life receive hints until it ends.
func (b *broker) join(l *life) {
	l.journal.Internal().PollRarely(b.plan.rare)
	b.readers = append(b.readers, l)
}

// announce sends hints about a commit. When all is calm, each arrives, and some are still forged.
func (b *broker) announce(from *journal.Journal, id aggregate.ID, version uint64) {
	isCalm := b.world.isCalm()
	if b.relaying || isCalm && b.world.plan.sabotage == Ignore {
		return
	}
	b.readers = slices.DeleteFunc(b.readers, func(l *life) bool { return l.wire.isDead() })
	for _, l := range b.readers {
		if l.journal == from {
			continue
		}
		if !isCalm && b.happens(b.plan.lost) {
			b.world.oracle.count("hints lost", 1)
		} else {
			b.send(l, "hints", id, version)
		}
		if b.happens(b.plan.again) {
			b.send(l, "hints again", id, version)
		}
		if b.happens(b.plan.forged) {
			id, version := b.forge(id, version)
			b.send(l, "hints forged", id, version)
		}
	}
}

// send delivers a hint at once or later, so hints may overtake each other.
func (b *broker) send(to *life, kind string, id aggregate.ID, version uint64) {
	delay := draw.Pick(b.random, 0, draw.UpTo(b.random, 10*time.Millisecond))
	if !b.world.isCalm() && b.happens(b.plan.late) {
		delay = draw.UpTo(b.random, b.plan.lateBy)
	}
	time.AfterFunc(delay, func() {
		if to.wire.isDead() {
			return
		}
		b.world.oracle.count(kind, 1)
		if b.world.plan.sabotage == Believe {
			b.relaying = true
			to.journal.Internal().Notify(id, max(1, version)) // no commit has version 0
			b.relaying = false
			return
		}
		if to.bursts != nil {
			to.bursts.hint(id, version)
			return
		}
		to.journal.Internal().Hint(id, version)
	})
}

// forge returns a wrong version of the aggregate, or any version of one that may exist, may be
// deleted, was never written, or has a type without readers.
func (b *broker) forge(id aggregate.ID, version uint64) (aggregate.ID, uint64) {
	p, r := b.world.plan, b.random
	if r.IntN(2) == 0 {
		id = aggregate.ID{
			Type:  draw.Pick(r, draw.Pick(r, p.topics...), "parcel", sagaType("g1")),
			Value: fmt.Sprint(draw.Pick(r, "a", "a", importPrefix, "never"), r.IntN(p.aggregates)),
		}
	}
	return id, draw.Pick(r, 0, 1, version-1, version+1, version+2, version+100, math.MaxInt64, math.MaxUint64)
}

func (b *broker) happens(probability float64) bool { return b.random.Float64() < probability }
