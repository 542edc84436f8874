package checkpoint

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Key names a consumer group's work on a topic.
type Key struct{ Group, Topic string }

// Membership is what the members of a group agree on. Its methods return a changed copy;
// [Store.ChangeMembership] writes it.
type Membership struct {
	// Resets rises with every reset. Before and after it, positions, cursors and lists are
	// different rows.
	Resets uint64
	// Base is the epoch of all shards after the last reset: the first owner's is the next.
	Base uint64
	// Start, if not zero, leaves out the events that occurred before it.
	Start time.Time
	// Paused: nobody is to own a shard.
	Paused bool
	// Stopped is why, where a member has paused the group; nil where an operator has.
	Stopped *Stopped
	// ExternalPositions: positions are in a store of the members' own, as the last one to join has said.
	ExternalPositions bool
	// Resumed is how often a pause was ended.
	Resumed uint64
	// Joined is the number of the last member that joined. No number is given twice in one membership.
	Joined  uint64
	Members map[uint64]Member
	// Owners holds the owner of each shard; 0 or a departed member if the shard is free.
	Owners []uint64
	// Epochs has the term of the shard's last owner.
	Epochs []uint64
	// Unsettled are the terms of former owners whose handlers may have sent transactions that are
	// still to commit, since their end was not an orderly one.
	Unfenced []Term

	id     string // of its first change
	change string // the id of the last change; empty where there is no membership yet
}

// Term is a term of a shard that has ended.
type Term struct {
	Shard int
	Epoch uint64
	// Member is the number of the owner while it is a member and has not come to rest: it may not
	// know yet that the term has ended. 0 for one that has left or was evicted, and for one that
	// could not shut out what its handlers have sent.
	Member uint64
}

// Stopped is the event by which a group was stopped.
type Stopped struct {
	Aggregate aggregate.ID
	Number    uint64
	EventType string // empty where the event could not be read
	At        time.Time
	Reason    string
}

// Same reports that both are states of one membership. Numbers of members mean nothing to another,
// which a group has when it was removed and made again.
func (r Membership) Same(other Membership) bool { return r.id == other.id }

// Member is one of a group.
type Member struct {
	// Beat rises while the member lives, see [NextHeartbeat].
	Heartbeat uint64
	// Lease is how long others wait for a beat before they judge it dead.
	Lease time.Duration
	// Token is a random number by which a member finds itself in the membership when it does not know
	// whether it has joined; 0 for none.
	Token uint64
	// Operator: one that holds a shard for a moment, to edit its rows, and takes no share of the
	// work.
	Operator bool
	// Name is for people; empty for none.
	Name string
}

// beatUnits is how many beats there may be in a lease. Members send half as many.
const heartbeatUnits = 8

// NextHeartbeat returns the beat after another one. It is the time in eighths of the lease since 1970,
// so that people can see how old a heartbeat is: a finer unit would take more of the row. It is
// more than the beat before also where the clock was set back.
func NextHeartbeat(before uint64, now time.Time, lease time.Duration) uint64 {
	unit := max(1, lease.Milliseconds()/heartbeatUnits)
	return max(before+1, uint64(max(0, now.UnixMilli()/unit)))
}

// LastHeartbeat returns the time of the last heartbeat by the clock of the member, up to an eighth of
// the lease too early. It is zero for a member without a lease.
func (m Member) LastHeartbeat() time.Time {
	unit := m.Lease.Milliseconds() / heartbeatUnits
	if unit == 0 || m.Heartbeat > uint64(math.MaxInt64/unit) {
		return time.Time{}
	}
	return time.UnixMilli(int64(m.Heartbeat) * unit) //nolint:gosec // it was compared
}

// NewRoster is a group without members on a number of shards.
func NewMembership(shards int, start time.Time) Membership {
	return Membership{Start: start, Members: map[uint64]Member{}, Owners: make([]uint64, shards), Epochs: make([]uint64, shards)}
}

// Exists reports that the membership was read, not made.
func (r Membership) Exists() bool { return r.change != "" }

func (r Membership) clone() Membership {
	r.Members = maps.Clone(r.Members)
	r.Owners, r.Epochs, r.Unfenced = slices.Clone(r.Owners), slices.Clone(r.Epochs), slices.Clone(r.Unfenced)
	return r
}

// Join adds a member and returns its number.
func (r Membership) Join(m Member) (Membership, uint64) {
	r = r.clone()
	r.Joined++
	r.Members[r.Joined] = m
	return r, r.Joined
}

// WithToken returns the number of the member with a token, and whether there is one.
func (r Membership) WithToken(token uint64) (member uint64, found bool) {
	for m, state := range r.Members {
		if state.Token == token {
			return m, true
		}
	}
	return 0, false
}

// Leave removes members. What they own is free then, and unfenced.
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

// works reports that a member has handlers, which an operator does not.
func (r Membership) works(member uint64) bool {
	m, is := r.Members[member]
	return is && !m.Operator
}

// unsettle adds a term. Of those of a shard that nobody will settle the lowest epoch is enough.
func (r *Membership) addUnfenced(t Term) {
	if t.Member == 0 {
		if i := slices.IndexFunc(r.Unfenced, func(is Term) bool { return is.Shard == t.Shard && is.Member == 0 }); i >= 0 {
			r.Unfenced[i].Epoch = min(r.Unfenced[i].Epoch, t.Epoch)
			return
		}
	}
	r.Unfenced = append(r.Unfenced, t)
}

// Settle is for the owner of a term that has come to rest. Shut out says that none of its handlers'
// transactions can commit any more.
func (r Membership) EndTerm(t Term, shutOut bool) Membership {
	r = r.clone()
	r.Unfenced = slices.DeleteFunc(r.Unfenced, func(is Term) bool { return is == t })
	if !shutOut {
		r.addUnfenced(Term{Shard: t.Shard, Epoch: t.Epoch})
	}
	return r
}

// Fenced forgets the unfenced terms of a shard that nobody is to settle any more. It is for an
// operator who has fenced them, and holds the shard.
func (r Membership) Fenced(shard int) Membership {
	r = r.clone()
	r.Unfenced = slices.DeleteFunc(r.Unfenced, func(is Term) bool { return is.Shard == shard && is.Member == 0 })
	return r
}

// UnsettledSince returns the lowest epoch of the unfenced terms of a shard that an operator may
// fence, 0 for none.
func (r Membership) UnfencedSince(shard int) uint64 {
	for _, t := range r.Unfenced {
		if t.Shard == shard && t.Member == 0 {
			return t.Epoch
		}
	}
	return 0
}

// Take makes a member the owner of shards, each in a new term. Those that it takes from another
// member are unfenced until that one has come to rest.
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

// Release frees those of the shards that a member owns. It has come to rest with them, and has shut
// out what its handlers have sent; otherwise they are to be unfenced, see [Membership.Settle].
func (r Membership) Release(member uint64, shards []int) Membership {
	r = r.clone()
	for _, shard := range shards {
		if r.Owners[shard] == member {
			r.Owners[shard] = 0
		}
	}
	return r
}

// Pause has the members release their shards, and take none until it is ended.
func (r Membership) Pause() Membership {
	r = r.clone()
	r.Paused = true
	return r
}

// Stop is a pause with what led to it.
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

// Reset has the group begin again: from a time on, or from the beginning if that is zero. A pause
// stays; the event that led to it is from before the reset.
func (r Membership) Reset(start time.Time) Membership {
	r = r.clone()
	r.Resets++
	r.Start, r.Stopped, r.Unfenced = start, nil, nil // positions are other rows now
	r.Base = slices.Max(r.Epochs) + 1
	for shard := range r.Owners {
		r.Owners[shard], r.Epochs[shard] = 0, r.Base
	}
	return r
}

// Owns reports that a member owns a shard in a term.
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
