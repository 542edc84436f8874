package metrics

import "time"

// ShardStatus is how far a subscriber has got with one logical shard that it holds.
type ShardStatus struct {
	Topic string
	Shard int
	// Epoch is the term under which the shard is held.
	Epoch uint64
	// Behind counts the events that are known and not acked.
	Behind uint64
	// OldestUnacked is when the oldest of them occurred; zero if there is none.
	OldestUnacked time.Time
	// Blocked and Parked count aggregates.
	Blocked, Parked int
	// CaughtUp says that the tail was read to its end.
	CaughtUp bool
}
