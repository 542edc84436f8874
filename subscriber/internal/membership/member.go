// Package membership decides which member of a consumer group works on which shard.
package membership

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Member is a member of the consumer group that works on its share of the topic's shards. W is the
// work on a shard.
type Member[W Work] struct {
	Config
	newWork func(Term) W

	// shards contains the shards that the member works on, by number, until their work has ended.
	shards []atomic.Pointer[held[W]]
	ended  chan *held[W]

	joined    chan struct{} // closed when it has joined for the first time, or has ended
	setJoined func()        // closes joined

	// Only the goroutine of Run or Visit uses the following fields.
	since      time.Time // the time at which it began to join
	number     uint64    // in the membership; 0 if it has not joined
	heartbeat  uint64
	membership checkpoint.Membership
	sightings  map[uint64]sighting
	// takeAfter holds shards that were lost although the membership still names this member as
	// owner. It takes them again after these times.
	takeAfter map[int]time.Time
	// unfenced holds terms of this member that ended while transactions of handlers could still
	// commit.
	unfenced map[checkpoint.Term]struct{}
	// until is the end of the lease of a visitor, and zero for a member. unclean holds the shards
	// whose owners have neither left nor stopped when the visitor joined.
	until   time.Time
	unclean map[int]bool
	expiry  *time.Timer
	expired *atomic.Bool // the lease has ended by this member's clock
	refused error        // of the last attempt to join or to hand over; nil if that has succeeded
}

type held[W Work] struct {
	Term
	work W
}

// New returns a member that has not joined. The function newWork makes the work of a term.
func New[W Work](c Config, newWork func(Term) W) *Member[W] {
	joined := make(chan struct{})
	return &Member[W]{
		Config: c, newWork: newWork, shards: make([]atomic.Pointer[held[W]], c.Shards), ended: make(chan *held[W]),
		joined: joined, setJoined: sync.OnceFunc(func() { close(joined) }),
		takeAfter: map[int]time.Time{}, unfenced: map[checkpoint.Term]struct{}{},
	}
}

// Joined is closed when the member has joined for the first time, or has ended.
func (m *Member[W]) Joined() <-chan struct{} { return m.joined }

// Work returns the work on a shard, if the member works on it.
func (m *Member[W]) Work(shard int) (work W, found bool) {
	if sh := m.shards[shard].Load(); sh != nil {
		return sh.work, true
	}
	return work, false
}

// All returns the work on all shards.
func (m *Member[W]) All() iter.Seq[W] {
	return func(yield func(W) bool) {
		for n := range m.shards {
			if work, found := m.Work(n); found && !yield(work) {
				return
			}
		}
	}
}

// sighting is the last heartbeat of another member, and the time at which it was first seen.
type sighting struct {
	heartbeat uint64
	since     time.Time
	lease     time.Duration
}

// heartbeatsPerLease is the number of heartbeats that a member sends in the time of a lease.
const heartbeatsPerLease = 4

// Run works until ctx ends. It joins again when it is evicted. It began to join at since, and seen
// is the membership that it has read, if any.
func (m *Member[W]) Run(ctx context.Context, since time.Time, seen checkpoint.Membership) {
	defer m.setJoined()
	defer context.AfterFunc(ctx, m.stopAll)() // at once, even while a request hangs
	m.since = since
	for m.join(ctx, seen, m.asMember) {
		m.work(ctx)
		m.since, seen = m.Now(), checkpoint.Membership{}
	}
}

// RunAlone works on all shards until ctx ends, with a membership that is not stored.
func (m *Member[W]) RunAlone(ctx context.Context, since time.Time) {
	defer m.setJoined()
	defer context.AfterFunc(ctx, m.stopAll)()
	m.expired = &atomic.Bool{}
	m.membership = checkpoint.NewMembership(len(m.shards), m.Checkpoint.Start(m.Start(since)))
	m.membership, m.number = m.membership.Join(checkpoint.Member{})
	all := m.membership.Free()
	m.membership = m.membership.Take(m.number, all)
	m.start(ctx, all)
	m.setJoined()
	<-ctx.Done()
	for !m.idle() {
		m.removeShard(<-m.ended)
	}
}

// stopAll stops the work on all shards.
func (m *Member[W]) stopAll() {
	for work := range m.All() {
		work.Stop()
	}
}

// work sends heartbeats and rebalances shards until the member is evicted, or until ctx has ended
// and the work on all shards has ended.
func (m *Member[W]) work(ctx context.Context) {
	defer m.expiry.Stop()
	heartbeat := time.NewTicker(m.Lease / heartbeatsPerLease)
	defer heartbeat.Stop()
	// The member sends heartbeats until its last shard has ended, which may be after the end of
	// ctx.
	asking := m.Closing
	ending := ctx.Done()
	m.adjust(asking, ctx.Err() != nil)
	check := time.NewTimer(m.nextCheck()) // a dead member may have a shorter lease
	defer check.Stop()
	for {
		select {
		case <-ending:
			ending = nil // all shards are stopping
		case <-heartbeat.C:
			m.sendHeartbeat(ctx)
		case <-check.C:
			m.sendHeartbeat(ctx)
		case sh := <-m.ended:
			m.removeShard(sh)
			if sh.work.IsLost() && m.isOwn(sh) {
				m.takeAfter[sh.Shard] = time.Now().Add(m.Lease / heartbeatsPerLease)
				m.sendHeartbeat(ctx)
			}
			if ctx.Err() != nil && !m.idle() {
				// It releases all shards in one change, or with the next heartbeat.
				continue
			}
		}
		if m.number == 0 || m.expired.Load() {
			m.abandon(asking)
			return
		}
		m.adjust(asking, ctx.Err() != nil)
		if m.number == 0 {
			m.abandon(asking)
			return
		}
		if ctx.Err() != nil && m.idle() {
			m.leave(asking)
			return
		}
		check.Reset(m.nextCheck())
	}
}

// sendHeartbeat sends a heartbeat and reads the membership.
func (m *Member[W]) sendHeartbeat(ctx context.Context) {
	asOf := time.Now()
	m.heartbeat = checkpoint.NextHeartbeat(m.heartbeat, m.Now(), m.Lease)
	once, cancel := context.WithTimeout(m.Closing, m.Lease/2)
	defer cancel()
	if ctx.Err() == nil { // a heartbeat that hangs must not delay the end
		defer context.AfterFunc(ctx, cancel)()
	}
	membership, err := m.Checkpoint.Heartbeat(once, m.Key, m.membership, m.number, m.heartbeat)
	switch {
	case err == nil:
		m.membership = membership
		m.expiry.Reset(time.Until(asOf.Add(m.Lease)))
	case errors.Is(err, checkpoint.ErrFenced):
		m.evicted()
	default:
		// This is not an error yet, because the lease has not ended.
		m.Logger.Info("Cannot renew the lease, will try again", watermill.LogFields{"member": m.number, "err": err})
	}
}

// evicted handles the eviction of this member by others.
func (m *Member[W]) evicted() {
	m.Logger.Info("The member was evicted and joins again", watermill.LogFields{"member": m.number})
	m.number = 0
}

// expire returns the function that ends the work when the lease has ended, before others may take
// the shards. It runs in its own goroutine, because the member may wait for a reply that does not
// come.
func (m *Member[W]) expire(number uint64, expired *atomic.Bool) func() {
	return func() {
		expired.Store(true)
		m.Logger.Info("The lease has ended without a heartbeat; the member stops and joins again", watermill.LogFields{"member": number})
		for n := range m.shards {
			if sh := m.shards[n].Load(); sh != nil && sh.Owner == number {
				sh.work.Lose()
			}
		}
	}
}

// adjust compares the membership with the shards that the member works on. It stops the work on
// shards that it has lost, frees shards whose work has ended, evicts dead members, and takes or
// releases shards to reach its share.
func (m *Member[W]) adjust(ctx context.Context, ending bool) {
	for moved := 0; !m.expired.Load(); {
		for n := range m.shards {
			if sh := m.shards[n].Load(); sh != nil && !m.isOwn(sh) {
				sh.work.Lose()
			}
		}
		var ended []int
		for _, n := range m.membership.Of(m.number) {
			if m.shards[n].Load() == nil {
				ended = append(ended, n)
			}
		}
		dead := m.deadMembers()
		next, reported := m.reportEnded(m.membership.Leave(dead...).Release(m.number, ended), ended)
		take, give := next.Share(m.number)
		if ending {
			take, give = nil, next.Of(m.number)
		}
		for _, n := range give {
			if sh := m.shards[n].Load(); sh != nil {
				sh.work.Stop()
			}
		}
		take = slices.DeleteFunc(take, func(n int) bool {
			return m.shards[n].Load() != nil || time.Now().Before(m.takeAfter[n])
		})
		if len(dead)+len(ended)+len(reported)+len(take) == 0 {
			return
		}
		once, cancel := context.WithTimeout(ctx, m.Lease/2)
		now, err := m.Checkpoint.ChangeMembership(once, m.Key, m.membership, next.Take(m.number, take))
		cancel()
		switch {
		case err == nil:
			m.membership = now
			for _, t := range reported {
				delete(m.unfenced, t)
			}
			m.start(ctx, take)
			return
		case !errors.Is(err, checkpoint.ErrMembershipChanged):
			m.Logger.Error("Cannot change the membership of the group, will try again", err, watermill.LogFields{"member": m.number})
			return
		}
		if !m.isIn(now) {
			m.evicted()
			return
		}
		moved++
		if now = m.backOff(ctx, now, moved); !m.isIn(now) {
			m.evicted()
			return
		}
		m.membership = now
	}
}

// reportEnded adds to the next membership how terms of this member have ended: the terms of shards
// that it frees, and of shards that were taken from it. A term ends fenced or unfenced. reportEnded
// returns the terms that it has reported.
func (m *Member[W]) reportEnded(next checkpoint.Membership, ended []int) (checkpoint.Membership, []checkpoint.Term) {
	var reported []checkpoint.Term
	for _, n := range ended {
		t := checkpoint.Term{Shard: n, Epoch: m.membership.Epochs[n]}
		if _, unfenced := m.unfenced[t]; unfenced {
			next = next.EndTerm(t, false)
			reported = append(reported, t)
		}
	}
	for _, taken := range m.membership.Unfenced {
		sh := m.shards[taken.Shard].Load()
		if taken.Member != m.number || sh != nil && sh.Epoch == taken.Epoch {
			continue
		}
		t := checkpoint.Term{Shard: taken.Shard, Epoch: taken.Epoch}
		_, unfenced := m.unfenced[t]
		next = next.EndTerm(taken, !unfenced)
		reported = append(reported, t)
	}
	return next, reported
}

// deadMembers returns members that have sent no heartbeat for the time of their lease.
func (m *Member[W]) deadMembers() (dead []uint64) {
	now := time.Now()
	sightings := map[uint64]sighting{}
	for other, state := range m.membership.Members {
		if other == m.number {
			continue
		}
		seen, known := m.sightings[other]
		if !known || seen.heartbeat != state.Heartbeat {
			seen = sighting{heartbeat: state.Heartbeat, since: now, lease: cmp.Or(state.Lease, m.Lease)}
		}
		sightings[other] = seen
		if (now.Sub(seen.since) >= seen.lease || state.HasLeft(m.Now())) && len(dead) < checkpoint.MaxLeaving {
			dead = append(dead, other)
		}
	}
	m.sightings = sightings
	return dead
}

// nextCheck returns the time until another member may be dead. A dead member that could not be
// evicted is tried again with the next heartbeat.
func (m *Member[W]) nextCheck() time.Duration {
	first := m.Lease
	for _, seen := range m.sightings {
		if left := time.Until(seen.since.Add(seen.lease)); left > 0 {
			first = min(first, left)
		}
	}
	return max(first, m.Lease/100)
}

// start starts the work on shards that the member has just taken.
func (m *Member[W]) start(ctx context.Context, numbers []int) {
	for _, n := range numbers {
		term := Term{Shard: n, Owner: m.number, Epoch: m.membership.Epochs[n], Unclean: m.unclean[n], Membership: m.membership}
		sh := &held[W]{Term: term, work: m.newWork(term)}
		m.shards[n].Store(sh)
		if m.expired.Load() {
			sh.work.Lose()
		}
		if ctx.Err() != nil {
			sh.work.Stop()
		}
		go func() {
			sh.work.Run()
			m.ended <- sh
		}()
	}
}

// removeShard removes a shard whose work has ended.
func (m *Member[W]) removeShard(sh *held[W]) {
	if !sh.work.IsFenced() {
		m.unfenced[checkpoint.Term{Shard: sh.Shard, Epoch: sh.Epoch}] = struct{}{}
	}
	m.shards[sh.Shard].CompareAndSwap(sh, nil)
}

func (m *Member[W]) isOwn(sh *held[W]) bool {
	return m.membership.Resets == sh.Membership.Resets && m.membership.Owns(m.number, sh.Shard, sh.Epoch)
}

func (m *Member[W]) idle() bool {
	for n := range m.shards {
		if m.shards[n].Load() != nil {
			return false
		}
	}
	return true
}

// abandon stops all work at once.
func (m *Member[W]) abandon(ctx context.Context) {
	for n := range m.shards {
		if sh := m.shards[n].Load(); sh != nil {
			sh.work.Lose()
		}
	}
	for !m.idle() {
		m.removeShard(<-m.ended)
	}
	if m.number != 0 {
		m.leave(ctx)
	}
}
