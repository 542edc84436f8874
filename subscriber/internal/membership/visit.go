package membership

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Visit is the work of a visitor. A visitor takes no share of the work. Otherwise members would
// pass half of their shards to it and back. It sends no heartbeats, so others know from the clock
// when it must have ended.
type Visit struct {
	// Seen is the membership that the caller has read.
	Seen checkpoint.Membership
	// Wanted are shards. Values is what to hand over if other visitors work on the shards: values
	// of ids of aggregates that may have events, and of checkpoint.SweepOf.
	Wanted []int
	Values []string
	// Since is the time at which the visitor began. A new group begins then.
	Since time.Time
	// Until is the end of the lease.
	Until time.Time
	// More is called when other visitors have handed over aggregates, and returns the shards of
	// these.
	More func(values []string) (wanted []int)
}

// Visit takes those of the wanted shards that no one works on, and frees them when the work on them
// has ended by itself or because ctx has ended. It returns these shards. It hands aggregates on
// shards of other visitors over to these, and returns the number of those. left counts what others
// have handed to this visitor too late. If the group is paused, it does nothing. refused is the
// error of the request because of which it could take or hand over nothing.
func (m *Member[W]) Visit(ctx context.Context, v Visit) (visited []int, handed, left int, refused error) {
	defer context.AfterFunc(ctx, m.stopAll)()
	m.number, m.refused = 0, nil
	for again := len(v.Wanted)+len(v.Values) > 0; again; {
		added, entered := m.enter(ctx, v)
		if handed += added; !entered {
			m.leaveBy(m.Closing, func(r checkpoint.Membership) (checkpoint.Membership, bool) {
				return m.left(r, m.number, m.unfenced), true
			})
			break
		}
		visited = append(visited, m.membership.Of(m.number)...)
		m.awaitEnd(ctx)
		m.expiry.Stop()
		again, left = m.endVisit(ctx)
		v.Wanted, v.Values, v.Seen = nil, nil, m.membership
	}
	return visited, handed, left, m.refused
}

// awaitEnd waits for the end of the work on all shards. It ends the work if the group is paused,
// reset or removed meanwhile.
func (m *Member[W]) awaitEnd(ctx context.Context) {
	check := time.NewTicker(m.Lease / heartbeatsPerLease)
	defer check.Stop()
	for !m.idle() {
		select {
		case sh := <-m.ended:
			m.removeShard(sh)
		case <-check.C:
			r, err := m.readMembership(ctx)
			if err != nil {
				continue
			}
			for n := range m.shards {
				if sh := m.shards[n].Load(); sh != nil && (!m.isIn(r) || r.Resets != sh.Membership.Resets || !r.Owns(m.number, n, sh.Epoch)) {
					sh.work.Lose()
				}
			}
			if r.Paused {
				m.stopAll()
			}
		}
	}
}

// enter takes the shards, or only hands aggregates over if there is no free shard. In the second
// case it returns false.
func (m *Member[W]) enter(ctx context.Context, v Visit) (handed int, entered bool) {
	m.since, m.until = v.Since, v.Until
	a := arrival[W]{m: m, Visit: v, earlier: m.number, unfenced: m.unfenced}
	for failures := 1; ctx.Err() == nil; failures++ {
		if len(m.Free(a.leaveEarlier(a.Seen), a.Wanted)) > 0 && m.join(ctx, a.Seen, a.join) {
			return a.handed, true
		}
		m.number = a.earlier // it still has to leave
		next, handed := m.handOver(a.Seen, a.Values)
		if handed == 0 || ctx.Err() != nil {
			break
		}
		_, err := m.Checkpoint.ChangeMembership(ctx, m.Key, a.Seen, next)
		if err == nil {
			return handed, false
		}
		if !errors.Is(err, checkpoint.ErrMembershipChanged) {
			m.refused = err
			m.Logger.Error("Cannot hand aggregates over to another visitor, so they wait for the next sweep", err, nil)
			break
		}
		a.Seen = m.backOff(ctx, a.Seen, failures)
	}
	return 0, false
}

// arrival is the beginning of a visit. The change that begins it also ends the earlier visit of the
// same visitor. Until then others may hand over more to the earlier one, so each attempt adds that
// to what is wanted.
type arrival[W Work] struct {
	m *Member[W]
	Visit
	earlier  uint64 // the number of the visitor in its earlier visit, 0 if there was none
	unfenced map[checkpoint.Term]struct{}
	handed   int // what the last attempt has handed over
}

func (a *arrival[W]) leaveEarlier(r checkpoint.Membership) checkpoint.Membership {
	if a.earlier == 0 {
		return r
	}
	next, handed := a.m.takeHanded(r, a.earlier)
	if len(handed) > 0 {
		a.Wanted = a.More(handed)
	}
	return a.m.left(next, a.earlier, a.unfenced)
}

// join is an attempt to join. It returns the number of the visitor and the shards that it takes. If
// none is free, the number is 0.
func (a *arrival[W]) join(r checkpoint.Membership, joining checkpoint.Member) (next checkpoint.Membership, number uint64, free []int) {
	m := a.m
	a.Seen = r
	next = a.leaveEarlier(r)
	if free = m.Free(next, a.Wanted); len(free) == 0 {
		return next, 0, nil
	}
	dead := m.gone(next)
	m.unclean = map[int]bool{}
	for n, owner := range next.Owners {
		m.unclean[n] = slices.Contains(dead, owner) && !next.Members[owner].Operator
	}
	joining.Until = m.Now().Add(time.Until(a.Until))
	joining.Lease = max(m.Lease, time.Until(a.Until))
	joining.Heartbeat = checkpoint.NextHeartbeat(0, m.Now(), joining.Lease)
	next, a.handed = m.handOver(next.Leave(dead...), a.Values)
	next, number = next.Join(joining)
	return next, number, free
}

// handOver adds those aggregates to a membership that are on shards of other visitors.
func (m *Member[W]) handOver(r checkpoint.Membership, values []string) (next checkpoint.Membership, handed int) {
	if !r.Exists() { // there was no time to join a new group
		return r, 0
	}
	var theirs []string
	for _, value := range values {
		owner, is := r.Members[r.Owners[m.shardOf(value)]]
		if is && !owner.Until.IsZero() {
			theirs = append(theirs, value)
		}
	}
	if r.Paused || len(theirs) == 0 {
		return r, 0
	}
	return r.HandOver(theirs)
}

// endVisit leaves the group, unless other visitors have handed something over meanwhile. Then again
// is true. If there is no time for that, it stays in the membership for the next visitor, and left
// is how much it is.
func (m *Member[W]) endVisit(ctx context.Context) (again bool, left int) {
	number, lost := m.number, m.expired.Load()
	m.leaveBy(m.Closing, func(r checkpoint.Membership) (checkpoint.Membership, bool) {
		if lost {
			return r.Leave(number), true
		}
		_, handed := m.takeHanded(r, number)
		left, again = len(handed), len(handed) > 0 && ctx.Err() == nil
		return m.left(r, number, m.unfenced), !again
	})
	return again, left
}

// takeHanded removes what was handed to a visitor, and returns it.
func (m *Member[W]) takeHanded(r checkpoint.Membership, number uint64) (checkpoint.Membership, []string) {
	return r.TakeHanded(func(value string) bool { return r.Owners[m.shardOf(value)] == number })
}

// shardOf returns the shard of a value that is handed over.
func (m *Member[W]) shardOf(value string) int {
	if n, sweep := checkpoint.SweptShard(value); sweep && n < len(m.shards) {
		return n
	}
	return m.ShardOf(value)
}

// Handed returns the shards of what was handed over in a membership.
func (m *Member[W]) Handed(r checkpoint.Membership) (shards []int) {
	for _, value := range r.Handed {
		shards = append(shards, m.shardOf(value))
	}
	return shards
}

// Visited returns the shards on which other visitors work.
func (m *Member[W]) Visited(r checkpoint.Membership) (shards []int) {
	gone := m.gone(r)
	for n, owner := range r.Owners {
		if state, is := r.Members[owner]; is && !state.Until.IsZero() && !slices.Contains(gone, owner) {
			shards = append(shards, n)
		}
	}
	return shards
}

// left returns a membership without a visitor whose work has ended.
func (m *Member[W]) left(r checkpoint.Membership, number uint64, unfenced map[checkpoint.Term]struct{}) checkpoint.Membership {
	if _, is := r.Members[number]; !is {
		return r
	}
	own := r.Of(number)
	next := r.Release(number, own)
	for _, n := range own {
		t := checkpoint.Term{Shard: n, Epoch: r.Epochs[n]}
		if _, is := unfenced[t]; is {
			next = next.EndTerm(t, false)
		}
	}
	next = next.Leave(number)
	if !m.hasShares(next) {
		next.Burst = m.Now()
	}
	return next
}

// Yields reports whether visitors leave all shards alone: the group is paused, or a member runs.
// Otherwise visitors that follow each other closely could keep the shards from a member that joins.
func (m *Member[W]) Yields(r checkpoint.Membership) bool {
	return r.Paused || m.hasShares(r.Leave(m.gone(r)...))
}

// hasShares reports whether a member has a share of the work.
func (m *Member[W]) hasShares(r checkpoint.Membership) bool {
	for _, other := range r.Members {
		if other.Shares() {
			return true
		}
	}
	return false
}

// Free returns those of some shards that a visitor may take.
func (m *Member[W]) Free(r checkpoint.Membership, wanted []int) []int {
	if m.Yields(r) {
		return nil
	}
	if !r.Exists() {
		return wanted
	}
	free := r.Leave(m.gone(r)...).Free()
	return slices.DeleteFunc(slices.Clone(wanted), func(n int) bool { return !slices.Contains(free, n) })
}

// gone returns members whose leases have ended by the clock. A member in a process that runs for
// long learns from heartbeats which others are dead, but a visitor is too short for that. So it
// leaves a member more time than its lease.
func (m *Member[W]) gone(r checkpoint.Membership) []uint64 {
	return m.silent(r, func(lease time.Duration) time.Duration { return 2*lease + storage.ClocksDiffer })
}
