package sim

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/draw"
)

// finish keeps one member of each group, waits until it has handled everything, closes all, and
// checks with another member whether anything is delivered again. It returns the number of events
// of each aggregate.
func (w *world) finish(ctx context.Context, operator *operator, random *rand.Rand) (map[stream]uint64, error) {
	w.oracle.note("calm", "")
	w.calm.Store(true)
	for _, p := range w.processes {
		if w.plan.disruption.measures {
			p.clock.skew = 0
		}
		if p.life != nil {
			p.life.calmDown()
		}
	}
	if err := operator.resumeAll(ctx); err != nil {
		return nil, err
	}
	tended := make(chan struct{})
	tending, leave := context.WithCancel(ctx)
	defer leave()
	go func() {
		defer close(tended)
		if w.plan.anybodyWaits() {
			operator.releaseAll(tending)
		}
	}()
	w.wires.arrive() // requests that are still late would commit later
	if err := w.finishRemovals(ctx); err != nil {
		return nil, err
	}
	heads, err := w.heads(ctx)
	if err != nil {
		return nil, err
	}
	for _, head := range heads {
		w.events += int(head)
	}
	w.takeOver(ctx, random)
	random.Shuffle(len(w.processes), func(i, j int) { w.processes[i], w.processes[j] = w.processes[j], w.processes[i] })
	if w.plan.disruption.has(Bursts) {
		if err := w.sweepUp(ctx, operator, heads); err != nil {
			return nil, err
		}
	}
	kept := map[string]bool{}
	for _, p := range w.processes {
		if p.life != nil && kept[p.group.name] {
			p.life.close()
			p.life = nil
		}
		kept[p.group.name] = kept[p.group.name] || p.life != nil
	}
	for _, p := range w.processes {
		if !kept[p.group.name] {
			if err := p.start(ctx, false); err != nil {
				return nil, err
			}
			kept[p.group.name] = true
		}
	}
	if w.plan.misplaces() {
		if err := operator.reconcileAll(ctx); err != nil {
			return nil, err
		}
	}
	w.await(ctx, heads)
	leave()
	<-tended
	if w.plan.disruption.measures && w.oracle.complete() {
		// Errors of clocks delay events, even by half a second.
		if err := w.measure(ctx); err != nil {
			return nil, err
		}
		if heads, err = w.heads(ctx); err != nil {
			return nil, err
		}
	}
	// Long enough for trailing reads, and for sagas that wake up and find that they could not store
	// that before.
	pauseFor(ctx, max(w.plan.trailing+time.Second, w.plan.sagas.longest()))
	w.closeAll()
	delivered := w.oracle.deliveries()
	for _, p := range w.processes {
		if kept[p.group.name] {
			kept[p.group.name] = false
			if err := p.start(ctx, false); err != nil {
				return nil, err
			}
		}
	}
	pauseFor(ctx, 5*time.Second)
	w.closeAll()
	if again := w.oracle.deliveries() - delivered; again > 0 && w.oracle.complete() {
		w.oracle.find(Repeated, "all was acked and all members were closed, but %d messages were delivered again", again)
	}
	return heads, nil
}

// heads returns the number of events of each aggregate to which groups subscribe.
func (w *world) heads(ctx context.Context) (map[stream]uint64, error) {
	heads := map[stream]uint64{}
	for head, err := range w.journal.Heads(ctx, journal.HeadsQuery{}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(head.Aggregate.Type, sagaPrefix) {
			heads[stream{topic: head.Aggregate.Type, id: head.Aggregate.Value}] = head.Version
		}
	}
	return heads, nil
}

// linger waits until the written events have been handled and timeouts have fired, during the
// storm, for a limited time.
func (w *world) linger(ctx context.Context) {
	for end := time.Now().Add(w.plan.duration); time.Now().Before(end); {
		heads, err := w.heads(ctx)
		if err == nil && w.pending(heads) == 0 {
			break
		}
		pauseFor(ctx, time.Second)
	}
	pauseFor(ctx, 2*w.plan.sagas.nap)
}

// pending returns the number of events that the groups have not acked.
func (w *world) pending(heads map[stream]uint64) (n uint64) {
	for _, g := range w.plan.groups {
		n += w.oracle.pending(g.name, heads)
	}
	return n
}

// takeOver makes a member of each group crash while nothing else happens, and checks whether other
// members take its shards in time: they have seen its last heartbeat one heartbeat after the crash,
// and evict it one lease after that.
func (w *world) takeOver(ctx context.Context, random *rand.Rand) {
	// Visits would delay a takeover.
	w.closeThose(func(l *life) bool { return l.bursts != nil })
	// absent members are back or evicted
	pauseFor(ctx, w.plan.longestAbsence()+2*w.plan.longestLease())
	begin := time.Now()
	var crashed []*life
	for _, group := range w.plan.groups {
		var living []*process
		for _, p := range w.processes {
			if p.life != nil && p.life.bursts == nil && p.group.name == group.name {
				living = append(living, p)
			}
		}
		if len(living) > 1 {
			p := draw.Pick(random, living...)
			w.oracle.note("crash", p.life.member.name)
			crashed, p.life = append(crashed, p.life), nil
			crashed[len(crashed)-1].kill()
		}
	}
	slices.SortStableFunc(crashed, func(a, b *life) int { return cmp.Compare(a.mostVacancy(), b.mostVacancy()) })
	for _, l := range crashed {
		pauseFor(ctx, time.Until(begin.Add(l.mostVacancy())))
		if n := w.oracle.left(l.member); n > 0 {
			w.oracle.find(Slow, "%v after %s crashed nobody had taken over %d of its shards", time.Since(begin), l.member.name, n)
		}
	}
}

// mostVacancy is how long shards may have no owner after a crash.
func (l *life) mostVacancy() time.Duration {
	lease := l.process.group.config.Timing.LeaseDuration
	return lease + lease/4 + takeOverSlack
}

// takeOverSlack is the time for the requests of a takeover: a few, one after the other.
const takeOverSlack = 100 * time.Millisecond

// patience is how long the groups may make no progress.
const patience = 5 * time.Minute

// await waits until all groups have acked everything, or there is no progress any more.
func (w *world) await(ctx context.Context, heads map[stream]uint64) {
	last, since := -1, time.Now()
	for ctx.Err() == nil {
		if !w.oracle.complete() {
			// A finding may also be the reason for missing progress.
			return
		}
		pending := w.pending(heads)
		if pending == 0 {
			return
		}
		if now := w.oracle.progress(); now != last {
			last, since = now, time.Now()
		} else if time.Since(since) > patience {
			w.oracle.find(Lost, "nothing was acked for %v, and %d events are left", patience, pending)
			return
		}
		pauseFor(ctx, 200*time.Millisecond)
	}
}

func (w *world) closeAll() { w.closeThose(func(*life) bool { return true }) }

func (w *world) closeThose(which func(*life) bool) {
	for _, p := range w.processes {
		if p.life != nil && which(p.life) {
			p.life.close()
			p.life = nil
		}
	}
}

// inspect compares the tables with the records of the oracle.
func (w *world) inspect(ctx context.Context, heads map[stream]uint64) error {
	positions, err := storedPositions(ctx, w.clean)
	if err != nil {
		return err
	}
	epochs, err := storedEpochs(ctx, w.clean)
	if err != nil {
		return err
	}
	if err := w.oracle.compareEpochs(epochs); err != nil {
		return err
	}
	var groups []string
	for _, g := range w.plan.groups {
		groups = append(groups, g.name)
	}
	w.oracle.compareStored(groups, heads, positions)
	skipped, err := w.inspectRecords(ctx)
	if err != nil {
		return err
	}
	rows := map[string][2]uint64{}
	err = scan(ctx, w.clean, effectsTable, func(row map[string]types.AttributeValue) {
		rows[text(row["id"])] = [2]uint64{number(row["n"]), number(row["s"])}
	})
	if err != nil {
		return err
	}
	for _, g := range w.plan.groups {
		if !g.handlers.projection {
			continue
		}
		for _, s := range sorted(heads) {
			n, sum := allHappened(heads[s])
			own := stream{g.name, s.topic, s.id}
			for _, number := range skipped[own] {
				if hasHappened(number) {
					n, sum = n-1, sum-number
				}
			}
			more, sumOfMore := w.oracle.againOf(own)
			passed, sumOfPassed := w.oracle.passedOf(own)
			n, sum = n+more-passed, sum+sumOfMore-sumOfPassed
			if got, want := rows[effectID(g.name, s.topic, s.id)], [2]uint64{n, sum}; got != want {
				w.oracle.find(Effect, "%s had %d effects with the sum %d, not %d with %d", own, got[0], got[1], want[0], want[1])
			}
		}
	}
	return nil
}

// compareStored compares the events and the positions in the table with the records at the end.
func (o *oracle) compareStored(groups []string, heads, positions map[stream]uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, group := range groups {
		for _, aggregate := range sorted(heads) {
			head := heads[aggregate]
			s := stream{group, aggregate.topic, aggregate.id}
			if o.doneTo(s, head) < head {
				o.finding(Lost, "%s has %d events, the group acked up to #%d, its position is #%d", s, head, o.ackedOf(s), positions[s])
			}
		}
	}
	for _, s := range sorted(positions) {
		h := o.streams[s]
		switch {
		case h == nil:
			o.finding(Moved, "the table has #%d for %s, of which nothing was seen", positions[s], s)
		case h.position() != positions[s]:
			o.finding(Moved, "the table has #%d for %s, and #%d was stored", positions[s], s, h.position())
		case h.acked != positions[s] && !o.isRemovedBehind(s, positions[s], h.acked):
			o.finding(Moved, "all is closed, but the table has #%d for %s, and #%d was acked", positions[s], s, h.acked)
		}
	}
	for _, s := range sorted(o.streams) {
		if _, ok := positions[s]; !ok && o.streams[s].acked > 0 && !o.isRemovedBehind(s, 0, o.streams[s].acked) {
			o.finding(Moved, "all is closed, but the table has no position for %s, and #%d was acked", s, o.streams[s].acked)
		}
	}
}
