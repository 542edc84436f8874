package soak

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/test/draw"
)

// drawFaults activates every fault of dynamotest, each with a random frequency, which may be zero.
func drawFaults(r *rand.Rand, db *dynamotest.DB, pause func(context.Context)) *draw.FaultMix {
	faults := []struct {
		fault   dynamotest.Fault
		chances []float64
	}{
		{dynamotest.Throttle(), []float64{0, 0.005, 0.03, 0.08}},
		{dynamotest.InternalError(), []float64{0, 0.005, 0.03, 0.08}},
		{dynamotest.Conflict(), []float64{0, 0.005, 0.03, 0.08}},
		{dynamotest.CutConnection(), []float64{0, 0.005, 0.03, 0.08}},
		{dynamotest.LoseReply(), []float64{0, 0.005, 0.03, 0.1}},
		{dynamotest.Unprocessed(1 + r.IntN(3)), []float64{0, 0.1, 0.5}},
		{dynamotest.SmallPages(1 + r.IntN(20)), []float64{0, 0.1, 0.5}},
		{dynamotest.Latency(0, 200*time.Microsecond), []float64{0, 0.02}},
		{dynamotest.Hold(pause), []float64{0, 0.02, 0.1}},
		{dynamotest.Tear(pause), []float64{0, 0.02, 0.1, 0.2}},
		{dynamotest.StaleReads(0, time.Duration(1+r.IntN(500))*time.Millisecond), []float64{0, 0.1, 0.5, 1}},
	}
	// A chance depends on how often the same call came. The seed does not decide how often the
	// descriptor is read in the background.
	decided := dynamotest.Matching(func(_ string, in any) bool { return !readsDescriptor(in) })
	mix := &draw.FaultMix{}
	for _, f := range faults {
		if chance := draw.Pick(r, f.chances...); chance > 0 {
			mix.Inject(db, f.fault, dynamotest.Chance(chance), decided)
		}
	}
	late := dynamotest.DelayIndex(0, time.Duration(1+r.IntN(500))*time.Millisecond)
	if chance := draw.Pick(r, 0, 0.1, 0.5, 1); chance > 0 {
		mix.Inject(db, late, dynamotest.Chance(chance))
	}
	return mix
}
