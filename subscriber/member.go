package subscriber

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// member is one call of Subscribe: a member of the consumer group, which works on its share of the
// topic's logical shards.
type member struct {
	*subscription
	key checkpoint.Key

	// held are the shards that it works on, by number, until they have come to rest.
	held   []atomic.Pointer[shard]
	rested chan *shard

	// What follows is for the goroutine of run alone.
	since     time.Time // it asks to be a member
	number    uint64    // in the roster; 0 when it has not joined
	beat      uint64
	roster    checkpoint.Roster
	sightings map[uint64]sighting
	shunned   map[int]time.Time            // shards that were lost though the roster says otherwise
	unsettled map[checkpoint.Term]struct{} // which came to rest while transactions of handlers could still commit
	expiry    *time.Timer
	expired   *atomic.Bool // the lease is over, by this member's own clock
}

// sighting is since when another member's beat has been what it is.
type sighting struct {
	beat  uint64
	since time.Time
	lease time.Duration
}

// maxDead bounds the members that one change of the roster removes: its condition has a part for
// each.
const maxDead = 50

// beats is how often a member shows in the time of a lease that it lives.
const beats = 4

func (sub *Subscriber) newMember(ctx context.Context, topic string, since time.Time) *member {
	shards := sub.config.Journal.Shards()
	return &member{
		subscription: sub.newSubscription(ctx, topic),
		key:          checkpoint.Key{Group: sub.config.ConsumerGroup, Topic: topic},
		held:         make([]atomic.Pointer[shard], shards), rested: make(chan *shard),
		since: since, shunned: map[int]time.Time{}, unsettled: map[checkpoint.Term]struct{}{},
	}
}

// run works until ctx ends, and closes the output.
func (m *member) run(ctx context.Context, seen checkpoint.Roster) {
	defer close(m.out)
	defer m.close()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(m.config.CloseTimeout+writeOnClose, m.close) })()
	defer context.AfterFunc(ctx, m.stopAll)() // at once, also while a request hangs
	defer func() { m.lanes.stop(); m.lanes.wait() }()
	defer m.journal.Watch(m.topic, func(id aggregate.ID, version uint64) {
		if sh := m.held[m.journal.Shard(id)].Load(); sh != nil {
			sh.sequencer.wake(id, version)
		}
	})()
	if m.config.Broadcast {
		m.workAlone(ctx)
		return
	}
	defer m.sweeping(ctx)()

	for m.join(ctx, seen) {
		m.work(ctx)
		m.since, seen = m.now(), checkpoint.Roster{}
	}
}

// stopAll has all shards come to rest.
func (m *member) stopAll() {
	for n := range m.held {
		if sh := m.held[n].Load(); sh != nil {
			sh.stop()
		}
	}
}

// work sends heartbeats and rebalances shards until ctx ends and all shards have come to rest, or
// until the member is evicted.
func (m *member) work(ctx context.Context) {
	defer m.expiry.Stop()
	beat := time.NewTicker(m.config.LeaseDuration / beats)
	defer beat.Stop()
	judge := time.NewTimer(m.config.LeaseDuration)
	defer judge.Stop()
	// The roster is kept up to the end of the last shard, which may be after that of ctx.
	asking := m.closing
	ending := ctx.Done()
	m.adjust(asking, ctx.Err() != nil)
	for {
		select {
		case <-ending:
			ending = nil // all shards are told to stop
		case <-beat.C:
			m.show(ctx)
		case <-judge.C:
			m.show(ctx)
		case sh := <-m.rested:
			m.rest(sh)
			if sh.isLost() && m.isOwn(sh) {
				m.shunned[sh.number] = time.Now().Add(m.config.LeaseDuration / beats)
				m.show(ctx)
			}
			if ctx.Err() != nil && !m.idle() {
				continue // it leaves all of them at once, or with the next beat
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
		judge.Reset(m.nextJudgement())
	}
}

// show shows that it lives, and reads the roster.
func (m *member) show(ctx context.Context) {
	asOf := time.Now()
	m.beat = checkpoint.NextBeat(m.beat, m.now(), m.config.LeaseDuration)
	once, cancel := context.WithTimeout(m.closing, m.config.LeaseDuration/2)
	defer cancel()
	if ctx.Err() == nil { // a sign of life that hangs must not hold up the end
		defer context.AfterFunc(ctx, cancel)()
	}
	roster, err := m.checkpoint.Beat(once, m.key, m.roster, m.number, m.beat)
	switch {
	case err == nil:
		m.roster = roster
		m.expiry.Reset(time.Until(asOf.Add(m.config.LeaseDuration)))
	case errors.Is(err, ErrFenced):
		m.struckOff()
	default:
		// Not an error yet: it holds for most of its duration still.
		m.logger.Info("Cannot renew the lease, will try again", watermill.LogFields{"member": m.number, "err": err})
	}
}

// isIn reports that it is a member of a roster.
func (m *member) isIn(r checkpoint.Roster) bool {
	_, is := r.Members[m.number]
	return is && r.Same(m.roster)
}

// struckOff notes that others have given it up.
func (m *member) struckOff() {
	m.logger.Info("The group has gone on without this member, which joins again", watermill.LogFields{"member": m.number})
	m.number = 0
}

// expire returns the function that ends the work in good time before others may take it over. It
// runs in a goroutine of its own, as the member may be waiting for a reply that does not come.
func (m *member) expire(number uint64, expired *atomic.Bool) func() {
	return func() {
		expired.Store(true)
		m.logger.Info("Could not renew the lease for its whole duration, stops and joins again", watermill.LogFields{"member": number})
		for n := range m.held {
			if sh := m.held[n].Load(); sh != nil && sh.owner == number {
				sh.lose()
			}
		}
	}
}

// adjust brings what it works on and the roster together: it gives up what is another's, frees what
// has come to rest, removes members that are dead, and takes or gives its share.
func (m *member) adjust(ctx context.Context, ending bool) {
	for moved := 0; !m.expired.Load(); {
		for n := range m.held {
			if sh := m.held[n].Load(); sh != nil && !m.isOwn(sh) {
				sh.lose()
			}
		}
		var rested []int
		for _, n := range m.roster.Of(m.number) {
			if m.held[n].Load() == nil {
				rested = append(rested, n)
			}
		}
		dead := m.judge()
		next, settled := m.settle(m.roster.Leave(dead...).Release(m.number, rested), rested)
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
			return m.held[n].Load() != nil || time.Now().Before(m.shunned[n])
		})
		if len(dead)+len(rested)+len(settled)+len(take) == 0 {
			return
		}
		once, cancel := context.WithTimeout(ctx, m.config.LeaseDuration/2)
		now, err := m.checkpoint.ChangeRoster(once, m.key, m.roster, next.Take(m.number, take))
		cancel()
		switch {
		case err == nil:
			m.roster = now
			for _, t := range settled {
				delete(m.unsettled, t)
			}
			m.start(ctx, take)
			return
		case !errors.Is(err, checkpoint.ErrRosterMoved):
			m.logger.Error("Cannot change the roster of the group, will try again", err, watermill.LogFields{"member": m.number})
			return
		}
		if !m.isIn(now) {
			m.struckOff()
			return
		}
		moved++
		if now = m.backOff(ctx, now, moved); !m.isIn(now) {
			m.struckOff()
			return
		}
		m.roster = now
	}
}

// settle notes in the next roster what has become of the terms with which it has come to rest: of
// shards that it frees, and of those that were taken from it. It returns those that it has noted.
func (m *member) settle(next checkpoint.Roster, rested []int) (checkpoint.Roster, []checkpoint.Term) {
	var settled []checkpoint.Term
	for _, n := range rested {
		t := checkpoint.Term{Shard: n, Epoch: m.roster.Epochs[n]}
		if _, unsettled := m.unsettled[t]; unsettled {
			next = next.Settle(t, false)
			settled = append(settled, t)
		}
	}
	for _, taken := range m.roster.Unsettled {
		sh := m.held[taken.Shard].Load()
		if taken.Member != m.number || sh != nil && sh.epoch == taken.Epoch {
			continue
		}
		t := checkpoint.Term{Shard: taken.Shard, Epoch: taken.Epoch}
		_, unsettled := m.unsettled[t]
		next = next.Settle(taken, !unsettled)
		settled = append(settled, t)
	}
	return next, settled
}

// judge returns members that have shown no sign of life for the time of their lease.
func (m *member) judge() (dead []uint64) {
	now := time.Now()
	sightings := map[uint64]sighting{}
	for other, state := range m.roster.Members {
		if other == m.number {
			continue
		}
		seen, known := m.sightings[other]
		if !known || seen.beat != state.Beat {
			seen = sighting{beat: state.Beat, since: now, lease: cmp.Or(state.Lease, m.config.LeaseDuration)}
		}
		sightings[other] = seen
		if now.Sub(seen.since) >= seen.lease && len(dead) < maxDead {
			dead = append(dead, other)
		}
	}
	m.sightings = sightings
	return dead
}

// nextJudgement returns how long it takes until a further member may be dead. One that is dead
// already and could not be evicted is tried again with the next heartbeat.
func (m *member) nextJudgement() time.Duration {
	first := m.config.LeaseDuration
	for _, seen := range m.sightings {
		if left := time.Until(seen.since.Add(seen.lease)); left > 0 {
			first = min(first, left)
		}
	}
	return max(first, m.config.LeaseDuration/100)
}

// start begins to work on shards that were just taken.
func (m *member) start(ctx context.Context, numbers []int) {
	for _, n := range numbers {
		sh := m.newShard(n, m.roster)
		m.held[n].Store(sh)
		if m.expired.Load() {
			sh.lose()
		}
		if ctx.Err() != nil {
			sh.stop()
		}
		go func() {
			sh.run(context.WithoutCancel(m.ctx))
			m.rested <- sh
		}()
	}
}

// rest forgets a shard that has come to rest.
func (m *member) rest(sh *shard) {
	if sh.unsettled {
		m.unsettled[checkpoint.Term{Shard: sh.number, Epoch: sh.epoch}] = struct{}{}
	}
	m.held[sh.number].CompareAndSwap(sh, nil)
}

func (m *member) isOwn(sh *shard) bool {
	return m.roster.Resets == sh.key.Group.Resets && m.roster.Owns(m.number, sh.number, sh.epoch)
}

func (m *member) idle() bool {
	for n := range m.held {
		if m.held[n].Load() != nil {
			return false
		}
	}
	return true
}

// abandon stops everything where it stands.
func (m *member) abandon(ctx context.Context) {
	for n := range m.held {
		if sh := m.held[n].Load(); sh != nil {
			sh.lose()
		}
	}
	for !m.idle() {
		m.rest(<-m.rested)
	}
	if m.number != 0 {
		m.leave(ctx)
	}
}

// workAlone works on all shards until ctx ends, in a roster that nobody else sees.
func (m *member) workAlone(ctx context.Context) {
	m.expired = &atomic.Bool{}
	m.roster = checkpoint.NewRoster(len(m.held), m.checkpoint.Start(m.config.Start.Time(m.since)))
	m.roster, m.number = m.roster.Join(checkpoint.Member{})
	all := m.roster.Free()
	m.roster = m.roster.Take(m.number, all)
	m.start(ctx, all)
	<-ctx.Done()
	for !m.idle() {
		m.rest(<-m.rested)
	}
}
