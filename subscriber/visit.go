package subscriber

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/subscriber/internal/membership"
)

// visit is one round of work of a subscription in a burst: a sweep of shards, or hints by shard.
type visit struct {
	sweep bool         // all shards
	size  int          // the number of wanted shards
	swept map[int]bool // shards that another visitor has left to this one
	hints map[int]map[aggregate.ID]uint64
}

// A visit waits for the next attempt at an event if the pause is at most soon, and if the event has
// failed at most soonFailures times.
const (
	soon         = 500 * time.Millisecond
	soonFailures = 3
)

// acceptFor is the time in which a visit takes commits of this process. Later ones are for the next
// visit. Otherwise a visit could last until the deadline, and never come to what was handed over.
const acceptFor = 5 * time.Second

// hintsAtOnce is the number of hints that are checked before their shards are visited.
const hintsAtOnce = 1000

// watch passes commits of this process to the shards, or to the inbox.
func (s *subscription) watch() (stop func()) {
	return s.journal.Watch(s.topic, func(id aggregate.ID, version uint64) {
		sh, found := s.member.Work(s.journal.Shard(id))
		if !found || time.Now().UnixNano() > s.acceptsUntil.Load() || !sh.sequencer.Wake(id, version) {
			s.inbox.add(id, version)
		}
	})
}

// catchUp visits shards until the burst has no more work, and closes the output.
func (s *subscription) catchUp(ctx context.Context, unwatch func()) {
	defer func() {
		s.burst.subscriptions.Done()
		<-s.burst.ended
		close(s.out)
	}()
	defer s.close()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(s.config.CloseTimeout+s.burst.writes(), s.close) })()
	defer func() { s.lanes.Stop(); s.lanes.Wait(); s.journal.Layout.AwaitReads(s.closing) }()
	defer unwatch()
	defer s.inbox.end()
	select { // the handlers of a subscription that has not begun may commit for others
	case <-s.burst.begun:
	case <-ctx.Done():
	}
	if s.burst.sweep {
		s.visitShards(ctx, true, nil)
	}
	for ctx.Err() == nil {
		if hints := s.inbox.take(hintsAtOnce); len(hints) > 0 {
			s.visitShards(ctx, false, hints)
			continue
		}
		select {
		case <-s.inbox.arrived:
		case <-s.burst.done:
			return
		case <-ctx.Done():
		}
	}
}

// visitShards works on those shards that have something to do and that no one else works on.
func (s *subscription) visitShards(ctx context.Context, sweep bool, hints map[aggregate.ID]uint64) {
	err := s.tryVisit(ctx, sweep, hints)
	switch {
	case err == nil:
	case ctx.Err() != nil: // there was no time
		s.burst.leaveLate(max(1, len(hints)), s.now())
	default:
		s.burst.failed(err)
		s.burst.leave(len(hints), time.Time{})
	}
}

func (s *subscription) tryVisit(ctx context.Context, sweep bool, hints map[aggregate.ID]uint64) error {
	key := checkpoint.Key{Group: s.config.ConsumerGroup, Topic: s.topic}
	seen, err := s.checkpoint.PeekMembership(ctx, key)
	if err != nil || s.member.Yields(seen) {
		return err
	}
	v := &visit{sweep: sweep, hints: map[int]map[aggregate.ID]uint64{}}
	var wanted []int
	if sweep {
		wanted, err = s.shardsToSweep(ctx, seen)
	} else {
		wanted, err = s.shardsOf(ctx, seen, v, hints)
	}
	if err != nil || len(wanted) == 0 {
		return err
	}
	s.visit, v.size = v, len(wanted)
	s.acceptsUntil.Store(time.Now().Add(acceptFor).UnixNano())
	visited, handed, left, refused := s.member.Visit(ctx, membership.Visit{
		Seen: seen, Since: s.since, Wanted: wanted, Values: v.values(wanted), Until: s.burst.deadline, More: s.takeHanded,
	})
	missed := max(0, v.missed(wanted, visited)-handed) // other visitors do what was handed over
	if ctx.Err() != nil {
		s.burst.leaveLate(missed, s.now())
	} else {
		s.burst.leave(missed, time.Time{})
	}
	s.burst.leave(left, time.Time{})
	s.burst.failed(refused)
	return nil
}

// values returns what to hand over if other visitors work on the wanted shards.
func (v *visit) values(wanted []int) (values []string) {
	if v.sweep {
		for _, n := range wanted {
			values = append(values, checkpoint.SweepOf(n))
		}
	}
	for _, hints := range v.hints {
		for id := range hints {
			if _, is := checkpoint.SweptShard(id.Value); !is { // it would be taken for a sweep
				values = append(values, id.Value)
			}
		}
	}
	return values
}

// missed returns the number of aggregates on wanted shards that were not visited. A shard to sweep
// counts as one, because it may have unhandled events.
func (v *visit) missed(wanted, visited []int) (count int) {
	for _, n := range wanted {
		switch {
		case slices.Contains(visited, n):
		case v.sweep:
			count++
		default:
			count += len(v.hints[n])
		}
	}
	return count
}

// takeHanded makes the visit that handles what other visitors have handed over, and returns its
// shards.
func (s *subscription) takeHanded(values []string) (wanted []int) {
	s.acceptsUntil.Store(time.Now().Add(acceptFor).UnixNano())
	s.visit = &visit{swept: map[int]bool{}, hints: map[int]map[aggregate.ID]uint64{}}
	for _, value := range values {
		id := aggregate.ID{Type: s.topic, Value: value}
		n, swept := checkpoint.SweptShard(value)
		if swept = swept && n < s.config.Journal.Shards(); !swept {
			n = s.journal.Shard(id)
		}
		if s.visit.hints[n] == nil {
			s.visit.hints[n] = map[aggregate.ID]uint64{}
			wanted = append(wanted, n)
		}
		if swept {
			s.visit.swept[n] = true
		} else {
			s.visit.hints[n][id] = math.MaxUint64 // its version is not handed over
		}
	}
	s.visit.size = len(wanted)
	return wanted
}

// catchUp does what there is to do on a shard in a visit, and stops the shard.
func (sh *shard) catchUp(ctx context.Context) {
	defer sh.Stop()
	if sh.untilStart() > 0 {
		sh.settled = true
		return
	}
	var scanned error
	if sh.sweep || sh.config.Failures.kind == deferEvents {
		// Before any event is delivered, so that the number of deferred ones is limited.
		scanned = sh.deferrals.scan(ctx)
	}
	from, begun, refused := sh.begin(ctx)
	if !begun {
		sh.burst.failed(errors.Join(refusal(scanned), refused))
		sh.burst.leaveLate(len(sh.visit.hints[sh.number]), sh.now())
		return
	}
	sh.committer.begun.Store(true)
	if sh.sweep {
		sh.retryListed()
		sh.committer.verifyParked(ctx)
		passed := sh.source.Pass(ctx, from)
		sh.committer.complete.Store(scanned == nil && passed == nil && sh.sequencer.IsCaughtUp())
		if ctx.Err() == nil {
			sh.burst.failed(errors.Join(scanned, passed))
		}
		sh.reconcile(ctx)
	} else {
		for id, version := range sh.sequencer.LeaveOutTail(sh.committer.unread) {
			sh.inbox.add(id, version)
		}
	}
	for id, version := range sh.visit.hints[sh.number] {
		if !sh.sequencer.Hint(id, version) { // a limit is reached
			sh.inbox.add(id, version)
		}
	}
	sh.awaitSettled(ctx)
}

// reconcile does a part of a reconciliation that is due. The first part also verifies all parked
// aggregates.
func (sh *shard) reconcile(ctx context.Context) {
	if !sh.source.MustReconcile() {
		return
	}
	from := sh.committer.reconciling.Load()
	for more := from == nil; more; {
		more = sh.committer.verifyParked(ctx)
	}
	sh.committer.reconciling.Store(sh.source.ReconcileSlice(ctx, from))
}

// retryListed tries listed aggregates again that have failed often, as long as there are credits.
// Those that get none wait for the next sweep.
func (sh *shard) retryListed() {
	for _, st := range sh.sequencer.TakePaced() {
		sh.pace.wait(turn{deliverer: sh.deliverer, stream: st}, mostFailures)
	}
}

// refusal returns an error, or nil if its reason is that a context has ended. A lack of time is no
// error of a burst.
func refusal(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// awaitSettled waits until nothing is left to do on the shard in this visit, or until ctx ends.
func (sh *shard) awaitSettled(ctx context.Context) {
	for {
		sh.deferrals.release()
		if sh.deferrals.isSettled() && sh.sequencer.EndIfSettled() {
			sh.settled = true
			return
		}
		select {
		case <-sh.sequencer.Settles():
		case <-sh.deferrals.wake:
		case <-sh.wantsPass(): // something was not done because of a limit
			if err := sh.source.Pass(ctx, 0); err != nil && ctx.Err() == nil {
				sh.burst.failed(err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// wantsPass receives a value when a sweep must read the tail once more. With hints, what was not
// done because of a limit is done in another visit.
func (sh *shard) wantsPass() <-chan struct{} {
	if !sh.sweep {
		return nil
	}
	return sh.sequencer.WantsPoll()
}

// leaveRest records in the burst what a visit has not handled.
func (sh *shard) leaveRest() {
	count, due := sh.sequencer.Unfinished(sh.now())
	if sh.sweep && !sh.committer.complete.Load() {
		count++
	}
	due = firstOf(due, sh.deferrals.nextDue())
	if sh.settled {
		sh.burst.leave(count, due)
		return
	}
	sh.burst.leaveLate(count, due)
}

// firstOf returns the earlier of two times. A zero time is none.
func firstOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// hinted reports whether only hints are handled, and the tail is not read.
func (c *committer) hinted() bool { return c.visit != nil && !c.sweep }

// entriesPerHint is the number of entries of the behind list that a visit reads for each hint. In a
// query so many entries cost about as much as one entry that is read by its key.
const entriesPerHint = 10

// progressOfHints reads the progress of former owners for a visit because of hints. If the behind
// list is long, it reads only the last entries, and those of the hinted aggregates by their keys.
func (c *committer) progressOfHints(ctx context.Context) (checkpoint.Progress, error) {
	hints := c.visit.hints[c.number]
	p, err := c.checkpoint.ProgressUpTo(ctx, c.key, entriesPerHint*max(1, len(hints)))
	if err != nil || !p.More {
		return p, err
	}
	first := p.Behind[0].Aggregate.Value
	var ids []aggregate.ID
	for id := range hints {
		if id.Value < first {
			ids = append(ids, id)
		}
	}
	entries, err := c.checkpoint.Entries(ctx, c.key, ids)
	p.Behind = append(p.Behind, entries...)
	c.unread = func(id aggregate.ID) bool {
		_, hinted := hints[id]
		return id.Value < first && !hinted
	}
	return p, err
}

// leavesCursor reports that the cursor of a visit does not move: the tail is not read, or the
// cursor is not known yet.
func (c *committer) leavesCursor() bool { return c.hinted() || c.visit != nil && !c.begun.Load() }

// due returns the time at which a sweep must visit the shard again although the tail shows nothing
// new. It is zero if this is not known.
func (c *committer) due() time.Time {
	if c.visit == nil || c.deferredDue == nil || !c.complete.Load() {
		return time.Time{}
	}
	_, due := c.sequencer.Unfinished(c.now())
	if due = firstOf(due, c.deferredDue()); due.IsZero() {
		return checkpoint.Never
	}
	return due
}
