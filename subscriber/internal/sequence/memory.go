package sequence

import "sync/atomic"

// Memory limits what all shards of a subscription remember of aggregates (Config.StateBytes). A
// stream counts as streamBytes. A shard has a share of the limit. Only failing streams may exceed
// the share of their shard, as long as other shards leave room. So a shard with many failing
// streams stops reading, and the others continue. A nil memory has no limit.
type Memory struct {
	streams         int // the limit
	shards, failing atomic.Int64
}

// streamBytes is about what a stream needs. One that has failed needs 2.4 KiB.
const streamBytes = 1 << 10

// failingPart is the part of the limit that failing streams may fill together. Then shards whose
// share is not full may still fill it and read a page of that size, so at most three times as many
// streams fail. They take about as much as the limit. Streams whose position is unstored, and those
// that a reconciliation has added, get as much each.
const failingPart = 8

// PageEvents returns how many events a page of the tail may have. Their streams may all fail.
func (m *Memory) PageEvents() int { return max(100, m.share(failingPart, 10_000)) }

// NewMemory returns a limit of some bytes.
func NewMemory(bytes int) *Memory { return &Memory{streams: bytes / streamBytes} }

// Enter counts a shard until leave is called.
func (m *Memory) Enter() (leave func()) {
	m.shards.Add(1)
	return func() { m.shards.Add(-1) }
}

// share returns how many streams a shard may have: at most a part of the limit, divided by the
// number of shards, and at most a number.
func (m *Memory) share(part, most int) int {
	if m == nil {
		return most
	}
	return min(most, max(1, m.streams/part/max(1, int(m.shards.Load()))))
}

// fails changes the number of failing streams.
func (m *Memory) fails(n int) {
	if m != nil {
		m.failing.Add(int64(n))
	}
}

// isFull reports whether a shard with a number of unfinished streams must stop reading, because
// they may fail like the many that have failed.
func (m *Memory) isFull(unfinished int) bool {
	return m != nil && int(m.failing.Load()) >= m.streams/failingPart && unfinished >= m.share(failingPart, m.streams)
}
