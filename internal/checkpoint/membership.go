package checkpoint

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Key identifies a consumer group on a topic.
type Key struct{ Group, Topic string }

// Membership is the row that the members of a group share: its members, the owners of its shards,
// and the settings of the group. Its methods return a changed copy, which [Store.ChangeMembership]
// writes.
type Membership struct {
	// Resets counts the resets of the group. Before and after a reset, positions, cursors and lists
	// are different rows.
	Resets uint64
	// Base is the epoch of all shards after the last reset. The first owner of a shard has the next
	// epoch.
	Base uint64
	// Start is the time before which events are left out. It is zero if the group begins with the
	// first event.
	Start time.Time
	// Paused reports whether the group is paused: no member may own a shard.
	Paused bool
	// Stopped holds the event because of which a member has paused the group. It is nil if an
	// operator has paused it.
	Stopped *Stopped
	// ExternalPositions reports whether the members keep positions in a store of their own. The
	// last member that joined has set it.
	ExternalPositions bool
	// Rows says in which rows of a read model the positions are. It is nil if they are not in rows.
	Rows *Rows
	// NoReplay reports that events must not be delivered again unless an operator confirms it. The
	// last member that joined has set it.
	NoReplay bool
	// Resumed counts how often a pause was ended.
	Resumed uint64
	// Joined is the number of the last member that joined. Each number is used only once.
	Joined  uint64
	Members map[uint64]Member
	// Owners holds the owner of each shard. It is 0 or a departed member if the shard is free.
	Owners []uint64
	// Epochs holds the epoch of each shard's last owner.
	Epochs []uint64
	// Unfenced holds the terms of former owners whose handlers may have sent transactions that can
	// still commit.
	Unfenced []Term
	// Ended holds the generations of before the last reset, as far as they have rows.
	Ended Ended
	// Handed holds what visitors have handed to those that work on the shards: values of ids, and
	// of [SweepOf]. What is left when a visitor leaves is for the next one.
	Handed []string
	// Burst is the end of the last visit. It is zero if a member with a share has joined since.
	Burst time.Time

	id     string // the id of its first change
	change string // the id of its last change; empty if there is no membership yet
}

// Term is the time in which a member owned a shard. It has ended.
type Term struct {
	Shard int
	Epoch uint64
	// Member is the number of the owner if it is still a member and has not stopped: it may not
	// know yet that the term has ended. It is 0 if the owner has left or was evicted, or could not
	// fence the transactions of its handlers.
	Member uint64
}

// Stopped is the event because of which a group was stopped.
type Stopped struct {
	Aggregate aggregate.ID
	Number    uint64
	EventType string // empty if the event could not be read
	At        time.Time
	Reason    string
}

// Same reports whether both are states of the same membership row. A group that was removed and
// created again has another row, in which the numbers of members have another meaning.
func (r Membership) Same(other Membership) bool { return r.id == other.id }

// Member is a member of a group.
type Member struct {
	// Heartbeat rises while the member is alive, see [NextHeartbeat].
	Heartbeat uint64
	// Lease is how long others wait for a heartbeat before they evict the member.
	Lease time.Duration
	// Token is a random number by which a member finds its entry if it does not know whether it has
	// joined. It is 0 if the member has none.
	Token uint64
	// Operator reports whether the member is an operator. An operator holds one shard for a short
	// time to edit its rows, and takes no share of the work.
	Operator bool
	// Until is the end of the lease of a visitor, by the clock that dates events. It is zero for
	// other members. A visitor works on shards for a limited time. It takes no share of the work
	// and sends no heartbeat.
	Until time.Time
	// Name is shown to people. It may be empty.
	Name string
}

// Shares reports whether a member has a share of the work.
func (m Member) Shares() bool { return !m.Operator && m.Until.IsZero() }

// HasLeft reports whether a member is a visitor whose lease has ended.
func (m Member) HasLeft(now time.Time) bool {
	return !m.Until.IsZero() && now.Sub(m.Until) > storage.ClocksDiffer
}

// LeaveVisitors removes visitors whose leases have ended. removed is false if there are none.
func (r Membership) LeaveVisitors(now time.Time) (next Membership, removed bool) {
	var gone []uint64
	for number, m := range r.Members {
		if m.HasLeft(now) && len(gone) < MaxLeaving {
			gone = append(gone, number)
		}
	}
	return r.Leave(gone...), len(gone) > 0
}

// heartbeatUnits is the number of units in a lease. Members send a heartbeat every second unit.
const heartbeatUnits = 8

// NextHeartbeat returns the value of the heartbeat that follows the given one. It is the time since
// 1970 in eighths of the lease. People can read from it when the heartbeat was sent. A finer unit
// would take more of the row. The value rises even if the clock was set back.
func NextHeartbeat(before uint64, now time.Time, lease time.Duration) uint64 {
	unit := max(1, lease.Milliseconds()/heartbeatUnits)
	return max(before+1, uint64(max(0, now.UnixMilli()/unit)))
}

// LastHeartbeat returns the time of the last heartbeat by the clock of the member, up to an eighth
// of the lease too early. It is zero if the member has no lease.
func (m Member) LastHeartbeat() time.Time {
	unit := m.Lease.Milliseconds() / heartbeatUnits
	if unit == 0 || m.Heartbeat > uint64(math.MaxInt64/unit) {
		return time.Time{}
	}
	return time.UnixMilli(int64(m.Heartbeat) * unit) //nolint:gosec // it was compared
}

// NewMembership returns the membership of a group without members on a number of shards.
func NewMembership(shards int, start time.Time) Membership {
	return Membership{Start: start, Members: map[uint64]Member{}, Owners: make([]uint64, shards), Epochs: make([]uint64, shards)}
}

// Exists reports whether the membership was read from the table.
func (r Membership) Exists() bool { return r.change != "" }

func (r Membership) clone() Membership {
	r.Members = maps.Clone(r.Members)
	r.Owners, r.Epochs, r.Unfenced = slices.Clone(r.Owners), slices.Clone(r.Epochs), slices.Clone(r.Unfenced)
	r.Handed = slices.Clone(r.Handed)
	return r
}

// Join adds a member and returns its number.
func (r Membership) Join(m Member) (Membership, uint64) {
	r = r.clone()
	r.Joined++
	r.Members[r.Joined] = m
	return r, r.Joined
}

// WithToken returns the number of the member with a token. found is false if there is none.
func (r Membership) WithToken(token uint64) (member uint64, found bool) {
	for m, state := range r.Members {
		if state.Token == token {
			return m, true
		}
	}
	return 0, false
}

// MaxLeaving is the maximum number of members that one change may remove. Its condition has a part
// for each.
const MaxLeaving = 50

// Leave removes members. Their shards become free, and their terms are unfenced. See [MaxLeaving].
func (r Membership) Leave(members ...uint64) Membership {
	r = r.clone()
	for shard, owner := range r.Owners {
		if slices.Contains(members, owner) {
			if r.works(owner) {
				r.addUnfenced(Term{Shard: shard, Epoch: r.Epochs[shard]})
			}
			r.Owners[shard] = 0
		}
	}
	for _, m := range members {
		delete(r.Members, m)
	}
	for _, term := range slices.Clone(r.Unfenced) {
		if slices.Contains(members, term.Member) {
			r = r.EndTerm(term, false)
		}
	}
	return r
}

// works reports whether a member runs handlers. An operator does not.
func (r Membership) works(member uint64) bool {
	m, is := r.Members[member]
	return is && !m.Operator
}

// addUnfenced adds a term. Of the terms of a shard that have no member any more, it keeps only the
// lowest epoch.
func (r *Membership) addUnfenced(t Term) {
	if t.Member == 0 {
		if i := slices.IndexFunc(r.Unfenced, func(is Term) bool { return is.Shard == t.Shard && is.Member == 0 }); i >= 0 {
			r.Unfenced[i].Epoch = min(r.Unfenced[i].Epoch, t.Epoch)
			return
		}
	}
	r.Unfenced = append(r.Unfenced, t)
}

// EndTerm removes an unfenced term whose owner has stopped. fenced reports whether the owner has
// fenced the transactions of its handlers. If not, the term stays unfenced without a member.
func (r Membership) EndTerm(t Term, fenced bool) Membership {
	r = r.clone()
	r.Unfenced = slices.DeleteFunc(r.Unfenced, func(is Term) bool { return is == t })
	if !fenced {
		r.addUnfenced(Term{Shard: t.Shard, Epoch: t.Epoch})
	}
	return r
}

// WithoutUnfenced removes the unfenced terms of a shard that have no member any more. It is for an
// operator that has fenced them and holds the shard.
func (r Membership) WithoutUnfenced(shard int) Membership {
	r = r.clone()
	r.Unfenced = slices.DeleteFunc(r.Unfenced, func(is Term) bool { return is.Shard == shard && is.Member == 0 })
	return r
}

// UnfencedSince returns the lowest epoch of the unfenced terms of a shard that an operator may
// fence, or 0 if there is none.
func (r Membership) UnfencedSince(shard int) uint64 {
	for _, t := range r.Unfenced {
		if t.Shard == shard && t.Member == 0 {
			return t.Epoch
		}
	}
	return 0
}

// Take makes a member the owner of shards, each in a new term. The term of a shard that it takes
// from another member is unfenced until that member has stopped.
func (r Membership) Take(member uint64, shards []int) Membership {
	r = r.clone()
	for _, shard := range shards {
		if owner := r.Owners[shard]; owner != member && r.works(owner) {
			r.addUnfenced(Term{Shard: shard, Epoch: r.Epochs[shard], Member: owner})
		}
		r.Owners[shard] = member
		r.Epochs[shard]++
	}
	return r
}

// Release frees the shards that a member owns, and ignores the others. Before that, the member must
// have stopped its work on the shards and fenced the transactions of its handlers. A member that
// cannot fence them adds an unfenced term, see [Membership.EndTerm].
func (r Membership) Release(member uint64, shards []int) Membership {
	r = r.clone()
	for _, shard := range shards {
		if r.Owners[shard] == member {
			r.Owners[shard] = 0
		}
	}
	return r
}

// Pause makes the members release their shards, and take none until the pause is ended.
func (r Membership) Pause() Membership {
	r = r.clone()
	r.Paused = true
	return r
}

// Stop pauses the group and stores the event that was the reason.
func (r Membership) Stop(why Stopped) Membership {
	r = r.Pause()
	r.Stopped = &why
	return r
}

// Resume ends a pause.
func (r Membership) Resume() Membership {
	r = r.clone()
	if r.Paused {
		r.Resumed++
	}
	r.Paused, r.Stopped = false, nil
	return r
}

// Reset makes the group start over: at a time, or at the beginning if start is zero. A pause stays,
// but the event that was its reason is removed. The rows of before stay, see [FenceTime].
func (r Membership) Reset(start, now time.Time) Membership {
	r = r.clone()
	r.Ended = r.Ended.end(r.Resets, now)
	r.Resets++
	// The group has new position rows now.
	r.Start, r.Stopped, r.Unfenced, r.Handed = start, nil, nil, nil
	r.Base = slices.Max(r.Epochs) + 1
	for shard := range r.Owners {
		r.Owners[shard], r.Epochs[shard] = 0, r.Base
	}
	return r
}

// Owns reports whether a member owns a shard in a term.
func (r Membership) Owns(member uint64, shard int, epoch uint64) bool {
	return shard < len(r.Owners) && r.Owners[shard] == member && r.Epochs[shard] == epoch
}

// Of returns the shards that a member owns.
func (r Membership) Of(member uint64) []int {
	var shards []int
	for shard, owner := range r.Owners {
		if owner == member {
			shards = append(shards, shard)
		}
	}
	return shards
}

// Free returns the shards that no member owns.
func (r Membership) Free() []int {
	var shards []int
	for shard, owner := range r.Owners {
		if _, ok := r.Members[owner]; !ok {
			shards = append(shards, shard)
		}
	}
	return shards
}
