package membership

import (
	"context"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Visit takes those of the wanted shards that no one works on, and frees them when the work on them
// has ended by itself or because ctx has ended. seen is the membership that the caller has read.
// The lease ends at until. Visit returns the shards that it has worked on. They are none if others
// work on all of them, or if the group is paused.
//
// A visitor takes no share of the work, because members would pass half of their shards to it and
// back. It sends no heartbeats. So others know from the clock when it must have ended.
func (m *Member[W]) Visit(ctx context.Context, seen checkpoint.Membership, wanted []int, until time.Time) (visited []int) {
	defer context.AfterFunc(ctx, m.stopAll)()
	m.since, m.until = m.Now(), until
	if !m.join(ctx, seen, func(next checkpoint.Membership, joining checkpoint.Member) (checkpoint.Membership, uint64, []int) {
		free := m.Free(next, wanted)
		if len(free) == 0 {
			return next, 0, nil
		}
		joining.Until = m.Now().Add(time.Until(until))
		joining.Lease = max(m.Lease, time.Until(until))
		joining.Heartbeat = checkpoint.NextHeartbeat(0, m.Now(), joining.Lease)
		next, number := next.Leave(m.gone(next)...).Join(joining)
		return next, number, free
	}) {
		return nil
	}
	visited = m.membership.Of(m.number)
	for !m.idle() {
		m.removeShard(<-m.ended)
	}
	m.expiry.Stop()
	m.leaveBy(m.Closing, func(r checkpoint.Membership) checkpoint.Membership {
		if m.expired.Load() {
			return r.Leave(m.number)
		}
		own := r.Of(m.number)
		next, _ := m.reportEnded(r.Release(m.number, own), own)
		return next.Leave(m.number)
	})
	return visited
}

// Free returns those of some shards that a visitor may take.
func (m *Member[W]) Free(r checkpoint.Membership, wanted []int) []int {
	if r.Paused {
		return nil
	}
	free := r.Leave(m.gone(r)...).Free()
	return slices.DeleteFunc(slices.Clone(wanted), func(n int) bool { return !slices.Contains(free, n) })
}

// gone returns members whose leases have ended by the clock. A member in a process that runs for
// long learns from heartbeats which others are dead, but a visitor is too short for that. So it
// leaves a member more time than its lease.
func (m *Member[W]) gone(r checkpoint.Membership) (gone []uint64) {
	now := m.Now()
	for number, state := range r.Members {
		last := state.LastHeartbeat()
		dead := state.Until.IsZero() && !last.IsZero() && now.Sub(last) > 2*state.Lease+clocksDiffer
		if (dead || hasLeft(state, now)) && len(gone) < checkpoint.MaxLeaving {
			gone = append(gone, number)
		}
	}
	return gone
}

// hasLeft reports whether a member is a visitor whose time has ended.
func hasLeft(m checkpoint.Member, now time.Time) bool {
	return !m.Until.IsZero() && now.Sub(m.Until) > clocksDiffer
}

// clocksDiffer is the largest difference between two clocks after correction.
const clocksDiffer = 2 * time.Second
