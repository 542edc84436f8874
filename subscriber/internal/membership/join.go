package membership

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
)

// asMember joins a group with a share of the free shards.
func (m *Member[W]) asMember(next checkpoint.Membership, joining checkpoint.Member) (_ checkpoint.Membership, number uint64, take []int) {
	next, number = next.Leave(m.longGone(next)...).Join(joining)
	next.Handed, next.Burst = nil, time.Time{} // a member finds these events itself
	take, _ = next.Share(number)
	return next, number, take
}

// join makes the subscription a member of the group, in the way that enter says. It returns false
// when ctx has ended, or when enter returns the number 0.
func (m *Member[W]) join(
	ctx context.Context, seen checkpoint.Membership,
	enter func(checkpoint.Membership, checkpoint.Member) (next checkpoint.Membership, number uint64, take []int),
) bool {
	known := seen.Exists()
	m.number, m.expired, m.refused = 0, &atomic.Bool{}, nil
	// If the reply to an attempt is lost, the member finds its entry by the token. If it joined a
	// second time instead, no one would work on the shards of the first entry.
	token := rand.Uint64()
	var attempted time.Time // of the last attempt
	for moved := 0; ctx.Err() == nil; {
		asOf := time.Now()
		var err error
		if !known {
			seen, err = m.readMembership(ctx)
			known = err == nil
		}
		if number, joined := seen.WithToken(token); joined {
			m.refused = nil
			m.begin(ctx, number, seen, attempted)
			return true
		}
		if err == nil {
			err = m.Accepts(seen)
		}
		if err == nil {
			next := seen
			if !next.Exists() {
				next = checkpoint.NewMembership(len(m.shards), m.Checkpoint.Start(m.Start(m.since)))
			}
			joining := checkpoint.Member{Token: token, Lease: m.Lease, Heartbeat: checkpoint.NextHeartbeat(0, m.Now(), m.Lease)}
			if len(next.Members) < maxNamed {
				joining.Name = m.Name
			}
			next, number, take := enter(next, joining)
			if number == 0 {
				return false
			}
			next.ExternalPositions, next.Rows, next.NoReplay = m.ExternalPositions, m.Rows, m.NoReplay
			// The end of ctx does not cancel this request. A member that does not know that it has
			// joined would keep its shards from others.
			once, cancel := context.WithTimeout(m.Closing, m.Lease/2)
			var now checkpoint.Membership
			attempted = asOf
			now, err = m.Checkpoint.ChangeMembership(once, m.Key, seen, next.Take(number, take))
			cancel()
			if err == nil {
				m.refused = nil
				m.begin(ctx, number, now, asOf)
				return true
			}
			if errors.Is(err, checkpoint.ErrMembershipChanged) {
				moved++
				seen = m.backOff(ctx, now, moved)
				continue
			}
			known = false
		}
		if ctx.Err() == nil {
			m.refused = err
			m.Logger.Error("Cannot join the consumer group, will try again", err, nil)
		}
		retry.Sleep(ctx, retry.Jitter(m.Lease/10))
	}
	if !attempted.IsZero() {
		m.withdraw(m.Closing, token)
	}
	return false
}

// longGone returns members whose last heartbeat is old by the clock. A joining member removes them
// before it has waited for their leases. Otherwise a process that crashes again and again, each
// time before a lease has passed, would add a member each time.
func (m *Member[W]) longGone(r checkpoint.Membership) []uint64 {
	return m.silent(r, func(lease time.Duration) time.Duration { return max(longGone, 2*lease) })
}

// silent returns members that have sent no heartbeat for longer than patience, which depends on
// their lease, and visitors whose leases have ended. It decides by the clock.
func (m *Member[W]) silent(r checkpoint.Membership, patience func(lease time.Duration) time.Duration) (silent []uint64) {
	now := m.Now()
	for number, state := range r.Members {
		last := state.LastHeartbeat()
		dead := state.Until.IsZero() && !last.IsZero() && now.Sub(last) > patience(state.Lease)
		if (dead || state.HasLeft(now)) && len(silent) < checkpoint.MaxLeaving {
			silent = append(silent, number)
		}
	}
	return silent
}

// longGone is longer than clocks differ.
const longGone = time.Hour

// begin starts to work on the shards that the member took when it joined, which was after asOf.
func (m *Member[W]) begin(ctx context.Context, number uint64, joined checkpoint.Membership, asOf time.Time) {
	m.number, m.heartbeat, m.membership, m.sightings = number, joined.Members[number].Heartbeat, joined, map[uint64]sighting{}
	m.unfenced = map[checkpoint.Term]struct{}{}
	end := asOf.Add(m.Lease)
	if !m.until.IsZero() {
		end = m.until
	}
	m.expiry = time.AfterFunc(time.Until(end), m.expire(number, m.expired))
	take := joined.Of(number)
	m.Logger.Debug("Joined the group", watermill.LogFields{"member": number, "shards": len(take)})
	m.start(ctx, take)
	m.setJoined()
}

// withdraw leaves the group if an attempt to join succeeded without a reply.
func (m *Member[W]) withdraw(ctx context.Context, token uint64) {
	ctx, cancel := context.WithTimeout(ctx, m.leaveTimeout())
	defer cancel()
	for failures := 1; ; failures++ {
		seen, err := m.readMembership(ctx)
		switch {
		case err == nil:
			m.membership = seen
			m.number, _ = seen.WithToken(token)
			m.leave(ctx)
			return
		case ctx.Err() != nil || errors.Is(err, journal.ErrAccess):
			m.Logger.Error("Cannot find out whether it has joined the group; others can take its shards when the lease has expired", err, nil)
			return
		}
		retry.Sleep(ctx, retry.Jitter(retry.Backoff(minFailurePause, maxFailurePause, failures)))
	}
}

// leave removes the member from the membership, so that others take over at once.
func (m *Member[W]) leave(ctx context.Context) {
	m.leaveBy(ctx, func(r checkpoint.Membership) (checkpoint.Membership, bool) { return r.Leave(m.number), true })
}

// leaveBy is leave with the change that removes the member. If change returns false, the member
// stays, and leaveBy stores nothing.
func (m *Member[W]) leaveBy(ctx context.Context, change func(checkpoint.Membership) (next checkpoint.Membership, leave bool)) {
	ctx, cancel := context.WithTimeout(ctx, m.leaveTimeout())
	defer cancel()
	seen := m.membership
	for failures, moved := 0, 0; m.isIn(seen); {
		next, leave := change(seen)
		if !leave {
			m.membership = seen
			return
		}
		now, err := m.Checkpoint.ChangeMembership(ctx, m.Key, seen, next)
		switch {
		case err == nil:
			return
		case errors.Is(err, checkpoint.ErrMembershipChanged):
			moved++
			seen = m.backOff(ctx, now, moved)
		case ctx.Err() != nil || errors.Is(err, journal.ErrAccess):
			m.Logger.Error("Cannot leave the group; others can take its shards when the lease has expired", err, nil)
			return
		default:
			failures++
			retry.Sleep(ctx, retry.Jitter(retry.Backoff(minFailurePause, maxFailurePause, failures)))
		}
	}
}

// isIn reports whether it is a member in a membership.
func (m *Member[W]) isIn(r checkpoint.Membership) bool {
	_, is := r.Members[m.number]
	return is && r.Same(m.membership)
}

// backOff waits after a conflict with another member, longer each time, and then reads the
// membership again. In a deployment many members join at once, and a failed attempt costs write
// units too.
func (m *Member[W]) backOff(ctx context.Context, now checkpoint.Membership, moved int) checkpoint.Membership {
	retry.Sleep(ctx, retry.Jitter(retry.Backoff(minBackOff, min(maxBackOff, m.Lease/20), moved)))
	if read, err := m.readMembership(ctx); err == nil {
		return read
	}
	return now
}

// readMembership reads the membership with a time limit, so that a connection that hangs does not
// block the member.
func (m *Member[W]) readMembership(ctx context.Context) (checkpoint.Membership, error) {
	ctx, cancel := context.WithTimeout(ctx, m.Lease/2)
	defer cancel()
	return m.Checkpoint.ReadMembership(ctx, m.Key)
}

const (
	minBackOff = 10 * time.Millisecond
	maxBackOff = 500 * time.Millisecond
	// Requests at the end are repeated after pauses of 0.1 to 30 seconds.
	minFailurePause = 100 * time.Millisecond
	maxFailurePause = 30 * time.Second
	// writeTimeout limits the time for leaving.
	writeTimeout = 5 * time.Second
)

// leaveTimeout is the time limit for leaving. After the lease, others take over in any case.
func (m *Member[W]) leaveTimeout() time.Duration { return min(writeTimeout, m.Lease) }

// maxNamed is the largest number of members with names. Further members have none, so names stay a
// small part of the row.
const maxNamed = 30
