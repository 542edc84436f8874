package millrace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// groupsNow returns the groups of the App, and those of the generations of its read models.
func (s *settling) groupsNow(ctx context.Context) (all []*settlingGroup, err error) {
	topicsOf := maps.Clone(s.topicsOf)
	for _, model := range s.readModels {
		generations, err := model.generations(ctx)
		if err != nil {
			return nil, err
		}
		for _, g := range generations {
			topicsOf[g.Group()] = model.config.Topics
		}
	}
	for _, name := range slices.Sorted(maps.Keys(topicsOf)) {
		s.mu.Lock()
		sub, defers := s.subscriberOf[name], s.defers[name]
		s.mu.Unlock()
		for _, topic := range topicsOf[name] {
			status, err := s.groups.Of(name, topic).Status(ctx)
			if err != nil && !errors.Is(err, groups.ErrNoGroup) {
				return nil, err
			}
			all = append(all, &settlingGroup{
				name: name, topic: topic, sub: sub, defers: defers, status: status, stuck: map[aggregate.ID]bool{},
			})
		}
	}
	return all, nil
}

// key returns the key of the group's rows in the checkpoint table.
func (g *settlingGroup) key() checkpoint.Group {
	return checkpoint.Group{Name: g.name, Resets: g.status.Resets}
}

// halted returns why a group handles nothing, or "".
func (g *settlingGroup) halted() string {
	switch why := g.status.Stopped; {
	case why != nil:
		return fmt.Sprintf("the group was stopped by event %d of %s: %s", why.Number, why.Aggregate, why.Reason)
	case g.status.Paused:
		return "the group is paused"
	}
	return ""
}

// unsettled returns an Unsettled for an event of a group.
func (g *settlingGroup) unsettled(id aggregate.ID, number uint64, reason string) Unsettled {
	return Unsettled{Group: g.name, Aggregate: id, Event: number, Reason: reason}
}

// setStuck records that a group cannot handle the events of an aggregate, once in a pass.
func (s *settling) setStuck(g *settlingGroup, u Unsettled) {
	if g.stuck[u.Aggregate] || len(s.stuck) > mostUnsettled {
		return
	}
	g.stuck[u.Aggregate], u.Stuck = true, true
	s.stuck = append(s.stuck, u)
}

// awaitListed waits for the events to which no cursor leads, because their aggregates are blocked
// or parked.
func (s *settling) awaitListed(ctx context.Context) error {
	for _, g := range s.watched {
		for b, err := range s.groups.Of(g.name, g.topic).Behind(ctx, aggregate.ID{}) {
			if errors.Is(err, groups.ErrNoGroup) {
				break
			}
			if err != nil {
				return err
			}
			if b.Parked != nil {
				s.setStuck(g, g.unsettled(b.Aggregate, b.Next, parkedReason(b.Parked.Reason)))
				continue
			}
			if err := s.awaitHandled(ctx, s.journal.Internal().Shard(b.Aggregate), []*settlingGroup{g}, map[aggregate.ID]uint64{b.Aggregate: b.Head}); err != nil {
				return err
			}
		}
	}
	return nil
}

// byTopic returns the groups by their topics.
func (s *settling) byTopic() map[string][]*settlingGroup {
	byTopic := map[string][]*settlingGroup{}
	for _, g := range s.watched {
		byTopic[g.topic] = append(byTopic[g.topic], g)
	}
	return byTopic
}

// settlePage is the number of events that are compared with the positions of the groups at once.
const settlePage = 500

// awaitTopic waits until all groups of a topic have handled the events of its tail that they may
// not have handled. It returns a hash of these events.
func (s *settling) awaitTopic(ctx context.Context, topic string, of []*settlingGroup) (found uint64, err error) {
	from, err := s.cursors(ctx, topic, of)
	if err != nil {
		return 0, err
	}
	for shard, at := range from {
		query := storage.TailQuery{AggregateType: topic, Shard: shard, NumbersOnly: true, Limit: settlePage}
		if at.UnixMilli() > 0 {
			query.After = storage.CursorAt(at)
		}
		for more := true; more; {
			page, err := s.journal.Internal().Raw().TailShard(ctx, query)
			if err != nil {
				return 0, err
			}
			last := map[aggregate.ID]uint64{}
			for _, r := range page.Records {
				last[r.Aggregate] = max(last[r.Aggregate], r.Number)
				found += maphash.String(s.seed, storage.SortKey(r.Aggregate, r.Number))
			}
			if err := s.awaitHandled(ctx, shard, of, last); err != nil {
				return 0, err
			}
			query.After, more = page.Next, page.More
		}
	}
	return found, nil
}

// cursors returns for each shard of a topic the time before which all groups have handled all
// events, except for listed ones. The first pass decides, so that all passes read the same part.
func (s *settling) cursors(ctx context.Context, topic string, of []*settlingGroup) ([]time.Time, error) {
	if from := s.from[topic]; from != nil {
		return from, nil
	}
	numbers := make([]int, s.journal.Shards())
	for n := range numbers {
		numbers[n] = n
	}
	from := make([]time.Time, len(numbers))
	for i, g := range of {
		rows, err := checkpoint.New(s.journal).Cursors(ctx, g.key(), topic, numbers)
		if err != nil {
			return nil, err
		}
		for n := range numbers {
			at := rows[n].Cursor
			if at.IsZero() {
				at = g.status.Start
			}
			if i == 0 || at.Before(from[n]) {
				from[n] = at
			}
		}
	}
	s.from[topic] = from
	return from, nil
}

// target is an event that a group must have handled.
type target struct {
	group  *settlingGroup
	id     aggregate.ID
	number uint64
}

// awaitHandled waits until groups have handled events of a shard, except for stuck ones.
func (s *settling) awaitHandled(ctx context.Context, shard int, of []*settlingGroup, last map[aggregate.ID]uint64) error {
	var targets []target
	for id, number := range last {
		for _, g := range of { // the tail index can be behind what a group has handled
			if g.sub != nil {
				status, _ := g.sub.Aggregate(id)
				number = max(number, status.Handled)
			}
		}
		for _, g := range of {
			targets = append(targets, target{g, id, number})
		}
	}
	hinted := false
	rounds := 0
	return s.await(ctx, func(ctx context.Context) ([]Unsettled, error) {
		unhandled, err := s.unhandled(ctx, targets)
		if err != nil || len(unhandled) == 0 {
			return nil, err
		}
		targets = unhandled
		if !hinted { // events of other processes, which a poll would find
			hinted = true
			for _, t := range targets {
				s.journal.Internal().Hint(t.id, t.number)
			}
		}
		if rounds++; rounds < 4 { // usually it takes a moment only
			return s.unexplained(targets), nil
		}
		return s.explain(ctx, shard, targets)
	})
}

// unexplained returns what is known of some targets without a request.
func (s *settling) unexplained(targets []target) (left []Unsettled) {
	for _, t := range targets[:min(len(targets), mostUnsettled+1)] {
		left = append(left, t.group.unsettled(t.id, t.number, ""))
	}
	return left
}

// unhandled returns those of some targets that are not handled, and not known to be stuck. Handled
// events of this process count although their positions are not stored yet.
func (s *settling) unhandled(ctx context.Context, targets []target) ([]target, error) {
	var unhandled, elsewhere []target
	for _, t := range targets {
		if t.group.stuck[t.id] {
			continue
		}
		var status subscriber.AggregateStatus
		known := false
		if t.group.sub != nil {
			status, known = t.group.sub.Aggregate(t.id)
		}
		switch {
		case !known:
			elsewhere = append(elsewhere, t)
		case status.Handled < t.number:
			unhandled = append(unhandled, t)
		}
	}
	behind, err := s.behind(ctx, elsewhere)
	return append(unhandled, behind...), err
}

// positionReaders is the number of positions that are read at a time.
const positionReaders = 16

// behind returns those of some targets that are beyond the stored position of their group.
func (s *settling) behind(ctx context.Context, targets []target) (behind []target, err error) {
	var reading sync.WaitGroup
	slots := make(chan struct{}, positionReaders)
	errs, positions := make([]error, len(targets)), make([]uint64, len(targets))
	for i, t := range targets {
		slots <- struct{}{}
		reading.Add(1)
		go func() {
			defer reading.Done()
			defer func() { <-slots }()
			position, err := s.groups.Position(ctx, t.group.name, t.id)
			if !errors.Is(err, groups.ErrNoGroup) { // it has not joined yet
				positions[i], errs[i] = position, err
			}
		}()
	}
	reading.Wait()
	for i, t := range targets {
		if positions[i] < t.number {
			behind = append(behind, t)
		}
	}
	return behind, errors.Join(errs...)
}

// explain returns why some targets of a shard are not handled, those with a reason first, and
// records those that are stuck.
func (s *settling) explain(ctx context.Context, shard int, targets []target) (left []Unsettled, err error) {
	byGroup := map[*settlingGroup][]target{}
	for _, t := range targets {
		byGroup[t.group] = append(byGroup[t.group], t)
	}
	for g, of := range byGroup {
		some, err := s.explainGroup(ctx, shard, g, of)
		if err != nil {
			return nil, err
		}
		left = append(left, some...)
	}
	slices.SortFunc(left, func(a, b Unsettled) int { return cmp.Compare(b.Reason, a.Reason) })
	return left, nil
}

// explainGroup is explain for the targets of one group.
func (s *settling) explainGroup(ctx context.Context, shard int, g *settlingGroup, targets []target) (left []Unsettled, err error) {
	g.status, err = s.groups.Of(g.name, g.topic).Status(ctx)
	if errors.Is(err, groups.ErrNoGroup) {
		return []Unsettled{g.unsettled(targets[0].id, targets[0].number, "the group has not joined yet")}, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []aggregate.ID
	for _, t := range targets {
		ids = append(ids, t.id)
	}
	entries, err := checkpoint.New(s.journal).Entries(ctx, checkpoint.Shard{Group: g.key(), Topic: g.topic, Number: shard}, ids)
	if err != nil {
		return nil, err
	}
	listed := map[aggregate.ID]checkpoint.Behind{}
	for _, b := range entries {
		listed[b.Aggregate] = b
	}
	for _, t := range targets {
		u, b := g.unsettled(t.id, t.number, g.halted()), listed[t.id]
		if u.Reason == "" && b.Parked != nil {
			u.Reason = parkedReason(b.Parked.Reason)
		}
		if u.Reason != "" {
			s.setStuck(g, u)
			continue
		}
		if g.sub != nil {
			status, _ := g.sub.Aggregate(t.id)
			u.Reason = status.Reason
		}
		if u.Reason == "" && b.Failure != nil {
			u.Reason = b.Failure.Reason
		}
		left = append(left, u)
	}
	return left, nil
}

func parkedReason(why string) string { return "the aggregate is parked: " + why }

// await calls check until it finds nothing that can still settle.
func (s *settling) await(ctx context.Context, check func(context.Context) ([]Unsettled, error)) error {
	pauses := retry.Pauses(time.Millisecond, 250*time.Millisecond, 0)
	for {
		left, err := check(ctx)
		if err != nil {
			return err
		}
		if err := s.ended(); err != nil {
			return err
		}
		if s.left = left; len(left) == 0 {
			return nil
		}
		if !retry.Sleep(ctx, pauses.NextBackOff()) {
			return ctx.Err()
		}
		if s.inBursts {
			if _, err := s.CatchUp(ctx); err != nil {
				return err
			}
		}
	}
}
