package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// pass handles what is due at a time. Done is called for each row, and for each other failure.
type pass[S any] struct {
	*Manager[S]
	now  time.Time
	pool *workerPool
	done func(fired bool, err error)
	// Series of this pass that have begun, by their keys; false for those that the pass leaves.
	begun map[string]bool
}

func (m *Manager[S]) newPass(pool *workerPool, done func(fired bool, err error)) *pass[S] {
	return &pass[S]{Manager: m, now: m.config.Now(), pool: pool, done: done}
}

// poll passes due rows to the workers of the pool. Left reports that rows are left because their
// process has earlier ones. It reads the number of queues after it has visited the known ones, so
// that the known queues do not wait for the read.
func (p *pass[S]) poll(ctx context.Context) (left bool) {
	defer p.stats.polls.Add(1)
	p.begun = map[string]bool{}
	failed := func(err error) {
		if err != nil {
			p.countFailed(ctx)
			p.done(false, err)
		}
	}
	known := p.queues.count()
	p.visit(ctx, 0, known, func(queue string) { failed(p.pollQueue(ctx, queue)) })
	failed(p.queues.refresh(ctx))
	p.visit(ctx, known, p.queues.count(), func(queue string) { failed(p.pollQueue(ctx, queue)) })
	for _, begun := range p.begun {
		left = left || !begun
	}
	return left
}

// pollQueue takes the due rows of a queue. Other managers see the same rows, so it takes them in
// random order, a batch of series at a time. If another manager already holds a row, pollQueue
// takes fewer and queries again, since a lost attempt costs one write unit.
func (p *pass[S]) pollQueue(ctx context.Context, queue string) error {
	var start item
	tried, batch := map[string]bool{}, 1
	for {
		page, last, err := p.due(ctx, queue, p.now, start)
		if err != nil {
			return fmt.Errorf("poll for due timeouts and commands: %w", err)
		}
		all := p.seriesOf(slices.DeleteFunc(page, func(row item) bool { return tried[rowName(row)] }))
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var later []*series[S]
		lost := false
		for len(all) > 0 && !lost {
			some := all[:min(batch, len(all))]
			all = all[len(some):]
			for _, s := range some {
				for _, row := range s.rows {
					tried[rowName(row)] = true
				}
			}
			var waiting []*series[S]
			if lost, waiting, err = p.begin(ctx, some); err != nil {
				return err
			}
			later = append(later, waiting...)
			if batch = min(2*batch, atOnce); lost {
				batch = max(1, batch/4)
			}
		}
		if err := p.beginLater(ctx, later); err != nil {
			return err
		}
		switch {
		case lost: // read the rest of the page again
		case last == nil:
			return nil
		default:
			start, tried = last, map[string]bool{}
		}
	}
}

// begin begins some series and waits for the leases of their first rows, at most for slotTimeout.
// Lost reports whether another manager held one of them. Waiting are those whose process has a
// series that this pass has begun before.
func (p *pass[S]) begin(ctx context.Context, some []*series[S]) (lost bool, waiting []*series[S], err error) {
	leased := make(chan bool, len(some))
	expected := 0
	for _, s := range some {
		begun, known := p.begun[s.key]
		switch under := p.pool.progress(s.key) != nil; {
		case known && !begun: // it has left earlier rows of the process
			continue
		case under && known:
			waiting = append(waiting, s)
			continue
		case under: // an earlier pass may have these rows
			p.begun[s.key] = false
			continue
		}
		p.begun[s.key] = true
		expected++
		s.first = func(lost bool) { leased <- lost }
		if err := p.pool.do(ctx, s.key, func() bool { return s.next(ctx) }); err != nil {
			return lost, waiting, err
		}
	}
	late := time.NewTimer(slotTimeout)
	defer late.Stop()
	for range expected {
		select {
		case other := <-leased:
			lost = lost || other
		case <-late.C:
			return lost, waiting, nil
		}
	}
	return lost, waiting, nil
}

// beginLater begins series when the earlier ones of their processes have ended. It leaves those
// that have to wait for longer than slotTimeout.
func (p *pass[S]) beginLater(ctx context.Context, all []*series[S]) error {
	late := time.NewTimer(slotTimeout)
	defer late.Stop()
	isLate := false
	for _, s := range all {
		if under := p.pool.progress(s.key); under != nil && !isLate {
			select {
			case <-under:
			case <-ctx.Done():
				return ctx.Err()
			case <-late.C:
				isLate = true
			}
		}
		if p.pool.progress(s.key) != nil {
			p.begun[s.key] = false
			continue
		}
		if _, _, err := p.begin(ctx, []*series[S]{s}); err != nil {
			return err
		}
	}
	return nil
}

// series are the due timeouts of one process, the earliest first, or one row of commands. Its rows
// are handled one after the other: concurrent steps of a process would conflict.
type series[S any] struct {
	*pass[S]
	key  string
	rows []item
	// Called when the outcome of the first lease is known. Lost means that another manager has it.
	first func(lost bool)
}

// seriesOf arranges due rows in series. The rows are in the order in which they are due.
func (p *pass[S]) seriesOf(rows []item) (all []*series[S]) {
	byKey := map[string]*series[S]{}
	for _, row := range rows {
		key := rowName(row)
		if strings.HasPrefix(text(row[skey]), timeoutPrefix) {
			key = text(row[pkey])
		}
		s := byKey[key]
		if s == nil {
			s = &series[S]{pass: p, key: key}
			byKey[key], all = s, append(all, s)
		}
		s.rows = append(s.rows, row)
	}
	return all
}

// next handles the next row, and reports whether there are more. It ends the series if another
// manager holds the row, or if the lease fails: a later poll finds the rest.
func (s *series[S]) next(ctx context.Context) (more bool) {
	row := s.rows[0]
	s.rows = s.rows[1:]
	own, fired, err := s.take(ctx, row, func(lost bool) {
		if s.first != nil {
			s.first(lost)
			s.first = nil
		}
	})
	if fired != nil {
		s.stats.fired.Add(1)
		s.follow(ctx, fired)
	}
	s.done(fired != nil, err)
	return own && len(s.rows) > 0
}

// follow removes the timeouts from the series that a step has changed, and adds those that it has
// set for a time between its own time and the time of the pass. Without that, a process that sets
// one timeout after the other would wait for a poll after each. A time that does not advance waits
// for the next poll, so that a reaction that always sets the same past time causes no hot loop.
func (s *series[S]) follow(ctx context.Context, fired *timeoutRow) {
	s.rows = slices.DeleteFunc(s.rows, func(row item) bool {
		_, changed := fired.step[strings.TrimPrefix(text(row[skey]), timeoutPrefix)]
		return changed
	})
	var set []item
	for _, write := range fired.step {
		if write.Put == nil {
			continue
		}
		if at := timeOf(write.Put.Item[dueAttribute]); at.After(fired.at) && !at.After(s.now) {
			set = append(set, write.Put.Item)
		}
	}
	set, err := s.withoutEarly(ctx, set)
	if err != nil {
		return // the next poll finds them
	}
	s.rows = append(s.rows, set...)
	slices.SortStableFunc(s.rows, func(a, b item) int {
		return timeOf(a[dueAttribute]).Compare(timeOf(b[dueAttribute]))
	})
}
