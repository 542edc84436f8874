package sim

import (
	"context"
	"slices"
	"time"
)

// history is what happened to one aggregate in one group.
type history struct {
	acked   uint64 // up to here each event was acked by somebody
	stored  []stored
	members map[*member]*acquaintance
	skipped map[uint64]record
	passed  map[uint64]bool // removed events that a projection has passed over
	// resets is how often an operator has sent the group back, and reset is when it last did.
	resets int
	reset  time.Duration
	// again counts the events that an effect was made of already when they were sent back, and sums
	// up their numbers.
	again [2]uint64
}

// stored is a position that the database has stored.
type stored struct {
	to uint64
	by *member
	// promised: no later owner may hand out an event up to here again. So it is if the position was
	// stored under the current epoch of its shard, or in a transaction with its effect. What a
	// former owner stores at another time is promised once an owner has read it.
	promised bool
	at       time.Duration // when it was promised
}

// promise has all that is stored count against repeats.
func (h *history) promise(now time.Duration) {
	for i := len(h.stored) - 1; i >= 0; i-- {
		if st := &h.stored[i]; !st.promised {
			st.promised, st.at = true, now
		}
	}
}

// member is one life of a process, as far as the oracle knows it.
type member struct {
	name  string
	group string
	born  time.Duration
	// notices is how long the member may go on after another has taken over, at most.
	notices time.Duration
}

// acquaintance is what a member has to do with an aggregate.
type acquaintance struct {
	resets int             // of the aggregate that it knows of
	knows  uint64          // the position that it was told by the database, or stored
	acked  uint64          // the highest event that it acked
	out    uint64          // the event that is with its handler, 0 for none
	ctx    context.Context // of that event's message: once done, the message does not count
}

// answered is told that the handler of a message has answered.
func (a *acquaintance) answered(ctx context.Context) {
	if a.ctx == ctx { // or another message is out meanwhile
		a.out = 0
	}
}

func (o *oracle) of(m *member, s stream) (*history, *acquaintance) {
	h := o.streams[s]
	if h == nil {
		h = &history{members: map[*member]*acquaintance{}, skipped: map[uint64]record{}, passed: map[uint64]bool{}}
		o.streams[s] = h
	}
	a := h.members[m]
	if a == nil {
		a = &acquaintance{ctx: context.Background(), resets: h.resets}
		h.members[m] = a
	}
	return h, a
}

func (o *oracle) ackedOf(s stream) uint64 {
	if h := o.streams[s]; h != nil {
		return h.acked
	}
	return 0
}

func (h *history) position() uint64 {
	if len(h.stored) == 0 {
		return 0
	}
	return h.stored[len(h.stored)-1].to
}

func sorted[V any](m map[stream]V) []stream {
	keys := make([]stream, 0, len(m))
	for s := range m {
		keys = append(keys, s)
	}
	slices.SortFunc(keys, func(a, b stream) int {
		return slices.Compare([]string{a.group, a.topic, a.id}, []string{b.group, b.topic, b.id})
	})
	return keys
}
