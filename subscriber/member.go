package subscriber

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/subscriber/internal/source"
)

// member is one call of Subscribe. It is a member of the consumer group, and works on its share of
// the topic's shards.
type member struct {
	*subscription
	key checkpoint.Key

	// held contains the shards that the member works on, by number, until their work has ended.
	held  []atomic.Pointer[shard]
	ended chan *shard

	joined    chan struct{} // closed when it has joined for the first time, or has ended
	setJoined func()        // closes joined

	// Only the goroutine of run uses the following fields.
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
	expiry   *time.Timer
	expired  *atomic.Bool // the lease has ended by this member's clock
}

// sighting is the last heartbeat of another member, and the time at which it was first seen.
type sighting struct {
	heartbeat uint64
	since     time.Time
	lease     time.Duration
}

// heartbeatsPerLease is the number of heartbeats that a member sends in the time of a lease.
const heartbeatsPerLease = 4

func (sub *Subscriber) newMember(ctx context.Context, topic string, since time.Time) *member {
	shards := sub.config.Journal.Shards()
	joined := make(chan struct{})
	return &member{
		subscription: sub.newSubscription(ctx, topic),
		key:          checkpoint.Key{Group: sub.config.ConsumerGroup, Topic: topic},
		held:         make([]atomic.Pointer[shard], shards), ended: make(chan *shard),
		joined: joined, setJoined: sync.OnceFunc(func() { close(joined) }),
		since: since, takeAfter: map[int]time.Time{}, unfenced: map[checkpoint.Term]struct{}{},
	}
}

// run works until ctx ends, and closes the output.
func (m *member) run(ctx context.Context, seen checkpoint.Membership) {
	defer close(m.out)
	defer m.setJoined()
	defer m.close()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(m.config.CloseTimeout+writeOnClose, m.close) })()
	defer context.AfterFunc(ctx, m.stopAll)() // at once, even while a request hangs
	defer func() { m.lanes.Stop(); m.lanes.Wait() }()
	defer m.journal.Watch(m.topic, func(id aggregate.ID, version uint64) {
		if sh := m.held[m.journal.Shard(id)].Load(); sh != nil {
			sh.sequencer.Wake(id, version)
		}
	})()
	if m.config.Broadcast {
		m.workAlone(ctx)
		return
	}
	defer m.reconciling(ctx)()

	for m.join(ctx, seen) {
		m.work(ctx)
		m.since, seen = m.now(), checkpoint.Membership{}
	}
}

// reconciling starts a goroutine that reconciles the shards.
func (m *member) reconciling(ctx context.Context) (stop func()) {
	if m.config.ReconcileInterval < 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		source.Reconcile(ctx, m.config.ReconcileInterval, func(yield func(*source.Source) bool) {
			for n := range m.held {
				if sh := m.held[n].Load(); sh != nil && !yield(sh.source) {
					return
				}
			}
		})
	}()
	return func() {
		cancel()
		<-ended
	}
}

// stopAll stops the work on all shards.
func (m *member) stopAll() {
	for n := range m.held {
		if sh := m.held[n].Load(); sh != nil {
			sh.stop()
		}
	}
}

// work sends heartbeats and rebalances shards until the member is evicted, or until ctx has ended
// and the work on all shards has ended.
func (m *member) work(ctx context.Context) {
	defer m.expiry.Stop()
	heartbeat := time.NewTicker(m.config.LeaseDuration / heartbeatsPerLease)
	defer heartbeat.Stop()
	// The member sends heartbeats until its last shard has ended, which may be after the end of
	// ctx.
	asking := m.closing
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
			if sh.isLost() && m.isOwn(sh) {
				m.takeAfter[sh.number] = time.Now().Add(m.config.LeaseDuration / heartbeatsPerLease)
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
func (m *member) sendHeartbeat(ctx context.Context) {
	asOf := time.Now()
	m.heartbeat = checkpoint.NextHeartbeat(m.heartbeat, m.now(), m.config.LeaseDuration)
	once, cancel := context.WithTimeout(m.closing, m.config.LeaseDuration/2)
	defer cancel()
	if ctx.Err() == nil { // a heartbeat that hangs must not delay the end
		defer context.AfterFunc(ctx, cancel)()
	}
	membership, err := m.checkpoint.Heartbeat(once, m.key, m.membership, m.number, m.heartbeat)
	switch {
	case err == nil:
		m.membership = membership
		m.expiry.Reset(time.Until(asOf.Add(m.config.LeaseDuration)))
	case errors.Is(err, ErrFenced):
		m.evicted()
	default:
		// This is not an error yet, because the lease has not ended.
		m.logger.Info("Cannot renew the lease, will try again", watermill.LogFields{"member": m.number, "err": err})
	}
}

// isIn reports whether it is a member in a membership.
func (m *member) isIn(r checkpoint.Membership) bool {
	_, is := r.Members[m.number]
	return is && r.Same(m.membership)
}

// evicted handles the eviction of this member by others.
func (m *member) evicted() {
	m.logger.Info("The member was evicted and joins again", watermill.LogFields{"member": m.number})
	m.number = 0
}

// expire returns the function that ends the work when the lease has ended, before others may take
// the shards. It runs in its own goroutine, because the member may wait for a reply that does not
// come.
func (m *member) expire(number uint64, expired *atomic.Bool) func() {
	return func() {
		expired.Store(true)
		m.logger.Info("The lease has ended without a heartbeat; the member stops and joins again", watermill.LogFields{"member": number})
		for n := range m.held {
			if sh := m.held[n].Load(); sh != nil && sh.owner == number {
				sh.lose()
			}
		}
	}
}

// adjust compares the membership with the shards that the member works on. It stops the work on
// shards that it has lost, frees shards whose work has ended, evicts dead members, and takes or
// releases shards to reach its share.
func (m *member) adjust(ctx context.Context, ending bool) {
	for moved := 0; !m.expired.Load(); {
		for n := range m.held {
			if sh := m.held[n].Load(); sh != nil && !m.isOwn(sh) {
				sh.lose()
			}
		}
		var ended []int
		for _, n := range m.membership.Of(m.number) {
			if m.held[n].Load() == nil {
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
			if sh := m.held[n].Load(); sh != nil {
				sh.stop()
			}
		}
		take = slices.DeleteFunc(take, func(n int) bool {
			return m.held[n].Load() != nil || time.Now().Before(m.takeAfter[n])
		})
		if len(dead)+len(ended)+len(reported)+len(take) == 0 {
			return
		}
		once, cancel := context.WithTimeout(ctx, m.config.LeaseDuration/2)
		now, err := m.checkpoint.ChangeMembership(once, m.key, m.membership, next.Take(m.number, take))
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
			m.logger.Error("Cannot change the membership of the group, will try again", err, watermill.LogFields{"member": m.number})
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
func (m *member) reportEnded(next checkpoint.Membership, ended []int) (checkpoint.Membership, []checkpoint.Term) {
	var reported []checkpoint.Term
	for _, n := range ended {
		t := checkpoint.Term{Shard: n, Epoch: m.membership.Epochs[n]}
		if _, unfenced := m.unfenced[t]; unfenced {
			next = next.EndTerm(t, false)
			reported = append(reported, t)
		}
	}
	for _, taken := range m.membership.Unfenced {
		sh := m.held[taken.Shard].Load()
		if taken.Member != m.number || sh != nil && sh.epoch == taken.Epoch {
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
func (m *member) deadMembers() (dead []uint64) {
	now := time.Now()
	sightings := map[uint64]sighting{}
	for other, state := range m.membership.Members {
		if other == m.number {
			continue
		}
		seen, known := m.sightings[other]
		if !known || seen.heartbeat != state.Heartbeat {
			seen = sighting{heartbeat: state.Heartbeat, since: now, lease: cmp.Or(state.Lease, m.config.LeaseDuration)}
		}
		sightings[other] = seen
		if now.Sub(seen.since) >= seen.lease && len(dead) < checkpoint.MaxLeaving {
			dead = append(dead, other)
		}
	}
	m.sightings = sightings
	return dead
}

// nextCheck returns the time until another member may be dead. A dead member that could not be
// evicted is tried again with the next heartbeat.
func (m *member) nextCheck() time.Duration {
	first := m.config.LeaseDuration
	for _, seen := range m.sightings {
		if left := time.Until(seen.since.Add(seen.lease)); left > 0 {
			first = min(first, left)
		}
	}
	return max(first, m.config.LeaseDuration/100)
}

// start starts the work on shards that the member has just taken.
func (m *member) start(ctx context.Context, numbers []int) {
	for _, n := range numbers {
		sh := m.newShard(n, m.membership)
		m.held[n].Store(sh)
		if m.expired.Load() {
			sh.lose()
		}
		if ctx.Err() != nil {
			sh.stop()
		}
		go func() {
			sh.run(context.WithoutCancel(m.ctx))
			m.ended <- sh
		}()
	}
}

// removeShard removes a shard whose work has ended.
func (m *member) removeShard(sh *shard) {
	if sh.unfenced {
		m.unfenced[checkpoint.Term{Shard: sh.number, Epoch: sh.epoch}] = struct{}{}
	}
	m.held[sh.number].CompareAndSwap(sh, nil)
}

func (m *member) isOwn(sh *shard) bool {
	return m.membership.Resets == sh.key.Group.Resets && m.membership.Owns(m.number, sh.number, sh.epoch)
}

func (m *member) idle() bool {
	for n := range m.held {
		if m.held[n].Load() != nil {
			return false
		}
	}
	return true
}

// abandon stops all work at once.
func (m *member) abandon(ctx context.Context) {
	for n := range m.held {
		if sh := m.held[n].Load(); sh != nil {
			sh.lose()
		}
	}
	for !m.idle() {
		m.removeShard(<-m.ended)
	}
	if m.number != 0 {
		m.leave(ctx)
	}
}

// workAlone works on all shards until ctx ends, with a membership that is not stored.
func (m *member) workAlone(ctx context.Context) {
	m.expired = &atomic.Bool{}
	m.membership = checkpoint.NewMembership(len(m.held), m.checkpoint.Start(m.config.Start.Time(m.since)))
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
