// Package draw makes the random decisions of test harnesses, so that a seed decides all of them:
// the settings of a world, the faults of dynamotest in it, their frequency, and the requests that
// they affect.
//
//	random := draw.New(seed, number)
//	shards := draw.Pick(random, 1, 2, 8)
//	var mix draw.FaultMix
//	mix.Inject(db, dynamotest.Throttle(), draw.Sometimes(random, 0.01))
//	...
//	mix.End()
package draw
