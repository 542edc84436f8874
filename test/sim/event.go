package sim

// There are two types of events. The number of an event decides its type, so that each follows from
// the other.

type happened struct{}

func (happened) EventType() string { return "happened" }

type noticed struct{}

func (noticed) EventType() string { return "noticed" }

// hasHappened reports the type of an event. There are single events of the type noticed, and rows
// of several.
func hasHappened(number uint64) bool { return number%5 != 0 && number%40 < 32 }

func eventType(number uint64) string {
	if hasHappened(number) {
		return happened{}.EventType()
	}
	return noticed{}.EventType()
}

// nextHappened returns the first event of the type happened from a number on.
func nextHappened(number uint64) uint64 {
	for !hasHappened(number) {
		number++
	}
	return number
}

// allHappened returns the number of events of the type happened among the first events of an
// aggregate, and the sum of their numbers.
func allHappened(events uint64) (n, sum uint64) {
	for number := uint64(1); number <= events; number++ {
		if hasHappened(number) {
			n, sum = n+1, sum+number
		}
	}
	return n, sum
}
