package sim

import (
	"context"
	"slices"
	"time"
)

// history is the history of one aggregate in one group.
type history struct {
	// acked is the number up to which each event was acked by some member.
	acked   uint64
	stored  []stored
	members map[*member]*acquaintance
	skipped map[uint64]record
	passed  map[uint64]bool // removed events that a projection has passed over
	// resets is how often an operator has reset the group here, and reset is when it last did.
	resets int
	reset  time.Duration
	// again is the number of events that had an effect before they were reset, and the sum of their
	// numbers.
	again [2]uint64
}

// stored is a position that the database has stored.
type stored struct {
	to uint64
	by *member
	// promised says that no later owner may deliver an event up to here again. This is true if the
	// position was stored under the current epoch of its shard, or in a transaction with its
	// effect. A position that a former owner stores at another time is promised once an owner has
	// read it.
	promised bool
	at       time.Duration // when it was promised
}

// promise makes all stored positions count against repeated deliveries.
func (h *history) promise(now time.Duration) {
	for i := len(h.stored) - 1; i >= 0; i-- {
		if st := &h.stored[i]; !st.promised {
			st.promised, st.at = true, now
		}
	}
}

// member is one life of a process, as the oracle sees it.
type member struct {
	name  string
	group string
	born  time.Duration
	// notices is the longest time for which the member may continue after another has taken over.
	notices time.Duration
}

// acquaintance is the state of a member for an aggregate.
type acquaintance struct {
	resets int // resets of the aggregate that it knows
	// The position that it has read or stored.
	knows uint64
	acked uint64 // the highest event that it acked
	out   uint64 // the event with its handler, 0 for none
	// The context of that event's message. When it is done, the message does not count.
	ctx context.Context
}

// answered records that the handler of a message has acked or nacked it.
func (a *acquaintance) answered(ctx context.Context) {
	if a.ctx == ctx { // or another message was delivered meanwhile
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
