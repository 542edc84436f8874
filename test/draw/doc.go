// Package draw makes the random decisions of test harnesses, so that a seed decides them all: which
// settings a world has, which faults of dynamotest happen in it, how often, and to which requests.
//
//	random := rand.New(rand.NewPCG(seed, number))
//	shards := draw.Pick(random, 1, 2, 8)
//	var mix draw.FaultMix
//	mix.Inject(db, dynamotest.Throttle(), draw.Sometimes(random, 0.01))
//	...
//	mix.End()
package draw
