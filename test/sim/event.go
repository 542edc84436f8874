package sim

// Two types of events are written. Which an event has is decided by its number, so that whoever
// knows the one knows the other.

type happened struct{}

func (happened) EventType() string { return "happened" }

type noticed struct{}

func (noticed) EventType() string { return "noticed" }

// hasHappened reports the type of an event: some that were noticed stand alone, some in a row.
func hasHappened(number uint64) bool { return number%5 != 0 && number%40 < 32 }

func eventType(number uint64) string {
	if hasHappened(number) {
		return happened{}.EventType()
	}
	return noticed{}.EventType()
}

// nextHappened is the first event from a number on that happened.
func nextHappened(number uint64) uint64 {
	for !hasHappened(number) {
		number++
	}
	return number
}

// allHappened counts those that happened among the first events of an aggregate, and sums up their
// numbers.
func allHappened(events uint64) (n, sum uint64) {
	for number := uint64(1); number <= events; number++ {
		if hasHappened(number) {
			n, sum = n+1, sum+number
		}
	}
	return n, sum
}
