package sim

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
)

// startWeather lets faults happen to the database, each as often as the world has it. Replies are lost on the wires instead,
// where the oracle sees what they said. It returns how to end it.
func startWeather(r *rand.Rand, db *dynamotest.DB, p *plan) (calm func()) {
	var injections []*dynamotest.Injection
	if p.indexLag > 0 {
		injections = append(injections, db.Inject(dynamotest.DelayIndex(0, p.indexLag), dynamotest.Chance(pick(r, 0.1, 0.5, 1))))
	}
	pause := dynamotest.For(rand64(r, 20*time.Millisecond))
	for _, fault := range []dynamotest.Fault{
		dynamotest.Throttle(), dynamotest.InternalError(), dynamotest.Conflict(), dynamotest.Hold(pause), dynamotest.Tear(pause),
		dynamotest.Unprocessed(1 + r.IntN(3)), dynamotest.SmallPages(1 + r.IntN(20)),
	} {
		if chance := p.weather * pick(r, 0, 1, 1, 3.0); chance > 0 {
			injections = append(injections, db.Inject(fault, sometimes(r, chance)))
		}
	}
	return func() {
		for _, i := range injections {
			i.Remove()
		}
	}
}

// sometimes is dynamotest's Chance without its care for the order of calls, which is the same here every time.
func sometimes(r *rand.Rand, chance float64) dynamotest.When {
	var mu sync.Mutex
	own := derive(r)
	return dynamotest.Matching(func(string, any) bool {
		mu.Lock()
		defer mu.Unlock()
		return own.Float64() < chance
	})
}

// derive makes random numbers of their own for a part of the world.
func derive(r *rand.Rand) *rand.Rand {
	return rand.New(rand.NewPCG(r.Uint64(), r.Uint64())) //nolint:gosec // not for secrets
}
