package sim

import (
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/test/draw"
)

// drawFaults adds faults to the database, with the frequencies of the world. Replies are lost on
// the wires instead, where the oracle sees their contents. Stale is the fault of stale reads, or
// nil.
func drawFaults(r *rand.Rand, db *dynamotest.DB, p *plan) (mix *draw.FaultMix, stale *dynamotest.Injection) {
	mix = &draw.FaultMix{}
	if p.indexLag > 0 {
		mix.Inject(db, dynamotest.DelayIndex(0, p.indexLag), dynamotest.Chance(draw.Pick(r, 0.1, 0.5, 1)))
	}
	for _, d := range p.disruption.delays {
		mix.Inject(db, dynamotest.DelayIndex(d.least, d.most), dynamotest.Index(tailIndex), dynamotest.Chance(d.chance))
	}
	if s := p.disruption.stale; s.chance > 0 {
		stale = mix.Inject(db, dynamotest.StaleReads(0, s.most), dynamotest.Chance(s.chance))
	}
	pause := dynamotest.For(draw.UpTo(r, 20*time.Millisecond))
	for _, fault := range []dynamotest.Fault{
		dynamotest.Throttle(), dynamotest.InternalError(), dynamotest.Conflict(), dynamotest.Hold(pause), dynamotest.Tear(pause),
		dynamotest.Unprocessed(1 + r.IntN(3)), dynamotest.SmallPages(1 + r.IntN(20)),
	} {
		if chance := p.faults * draw.Pick(r, 0, 1, 1, 3.0); chance > 0 {
			mix.Inject(db, fault, draw.Sometimes(r, chance))
		}
	}
	return mix, stale
}
