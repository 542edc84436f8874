package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	pm "github.com/millrace-dev/millrace/process"
)

// inspectSagas compares the events of sagas with the events of the world, and their commands with
// their events. It also checks that nothing is pending.
func (w *world) inspectSagas(ctx context.Context, heads map[stream]uint64) error {
	var ids map[stream][]string
	for _, g := range w.plan.groups {
		if !g.handlers.sagas {
			continue
		}
		if ids == nil {
			var err error
			if ids, err = w.eventIDs(ctx, heads); err != nil {
				return err
			}
		}
		followed := map[string]map[stream][]string{}
		for _, s := range sorted(heads) {
			id := w.plan.sagas.sagaOf(s.topic, s.id)
			if followed[id] == nil {
				followed[id] = map[stream][]string{}
			}
			followed[id][s] = ids[s]
		}
		for _, id := range slices.Sorted(maps.Keys(followed)) {
			c := &course{oracle: w.oracle, plan: w.plan, group: g.name, id: aggregate.ID{Type: sagaType(g.name), Value: id}, sources: followed[id]}
			records, err := w.history(ctx, c.id)
			if err != nil {
				return err
			}
			c.follow(records)
		}
	}
	for p, err := range pm.NewBacklog(w.clean, "").Pending(ctx, pm.BacklogQuery{}) {
		if err != nil {
			return err
		}
		w.oracle.find(Effect, "%s of %s was not handled", p.Row, p.Process)
	}
	return nil
}

// eventIDs returns the ids of all events.
func (w *world) eventIDs(ctx context.Context, heads map[stream]uint64) (map[stream][]string, error) {
	ids := map[stream][]string{}
	for _, s := range sorted(heads) {
		records, err := w.history(ctx, aggregate.ID{Type: s.topic, Value: s.id})
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			ids[s] = append(ids[s], r.EventID)
		}
	}
	return ids, nil
}

// history returns the events of an aggregate, including removed ones; none if there is no such
// aggregate.
func (w *world) history(ctx context.Context, id aggregate.ID) (all []*journal.Record, err error) {
	head, err := w.journal.Head(ctx, id)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w.oracle.removal(streamOf(id), func(r *removed) { all = slices.Clone(r.kept) })
	for r, err := range w.journal.Events(ctx, id, uint64(len(all))+1, head.Version) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", id, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// course is the course of a saga, as its events record it.
type course struct {
	oracle *oracle
	plan   *plan
	group  string
	id     aggregate.ID
	// The aggregates that it follows, with the ids of their events.
	sources map[stream][]string

	// The next event of each on which it must take a step.
	next  map[stream]uint64
	at    saga
	set   string // the timeout that is set, empty for none
	since time.Time
	sent  int // number of commands
	wrong bool
}

// follow expects a step for each event of the type happened, in the order of its source. It expects
// a waking for each timeout that no step has moved or cancelled, if it was due before. And it
// expects the commands of all of them.
func (c *course) follow(records []*journal.Record) {
	c.next = map[stream]uint64{}
	for s := range c.sources {
		c.next[s] = nextHappened(1)
	}
	for _, r := range records {
		switch {
		case c.at.Over:
			c.find("continues after its last step, on %s, with %s", c.at.Last, r.EventType)
		case r.EventType == woken{}.EventType():
			c.wake(r)
		default:
			c.step(r)
		}
		if c.wrong {
			// Later events follow from this mistake.
			return
		}
	}
	if !c.at.Over {
		c.end()
	}
	if n := c.oracle.commanded[stream{group: c.group, id: c.id.Value}]; n != c.sent {
		c.find("has sent %d commands, and remembers %d", n, c.sent)
	}
}

func (c *course) step(r *journal.Record) {
	var e stepped
	if err := json.Unmarshal(r.Payload, &e); err != nil {
		c.find("remembers what cannot be read: %v", err)
		return
	}
	s := e.stream()
	ids, next := c.sources[s], c.next[s]
	if e.Number != next && !c.removedBefore(s, next, e.Number) || e.Number > uint64(len(ids)) {
		c.find("takes a step on %s, not on #%d", e.source, next)
		return
	}
	if e.Steps != c.at.Steps+1 {
		c.find("takes step %d on %s after %d steps", e.Steps, e.source, c.at.Steps)
		return
	}
	c.next[s] = nextHappened(e.Number + 1)
	input := ids[e.Number-1]
	c.cause(r, input)
	for i, a := range e.acts() {
		c.command(a, input, i)
	}
	e.Apply(&c.at)
	c.since, c.set = e.Decided, ""
	if !e.ends() && !e.cancels() {
		c.set = c.derived(input, "timeout "+sagaTimeout)
	}
}

// removedBefore reports whether an event follows another because the events in between were
// removed.
func (c *course) removedBefore(s stream, next, number uint64) bool {
	r := c.oracle.removedOf(s)
	return r != nil && slices.ContainsFunc(r.points, func(before uint64) bool { return before > next && number == nextHappened(before) })
}

func (c *course) wake(r *journal.Record) {
	var e woken
	if err := json.Unmarshal(r.Payload, &e); err != nil {
		c.find("remembers what cannot be read: %v", err)
		return
	}
	if c.set == "" || e.Times != c.at.Woke+1 {
		c.find("wakes up after %s for the time %d, having woken %d times, with the timeout %q set", c.at.Last, e.Times, c.at.Woke, c.set)
		return
	}
	// A decision and its timeout use the clocks of one process, which differ by at most wander.
	if slept, least := e.Decided.Sub(c.since), c.plan.sagas.nap-2*c.plan.sagas.wander; slept < least {
		c.find("wakes up %v after %s, less than %v", slept, c.at.Last, least)
	}
	c.cause(r, c.set)
	c.command(act{source: c.at.Last, Steps: c.at.Steps, Woken: e.Times}, c.set, 0)
	e.Apply(&c.at)
	c.since = e.Decided
	if e.Times < mostNaps {
		c.set = c.derived(c.set, "timeout "+sagaTimeout)
	} else {
		c.set = ""
	}
}

// end expects that nothing is pending.
func (c *course) end() {
	for _, s := range sorted(c.sources) {
		next := nextHappened(max(c.next[s], c.oracle.removedOf(s).before()))
		if next <= uint64(len(c.sources[s])) {
			c.find("took no step on %s/%s #%d", s.topic, s.id, next)
		}
	}
	if c.set != "" {
		c.find("did not wake up again after %s, having woken %d times", c.at.Last, c.at.Woke)
	}
}

// cause expects that an event of a saga records its cause.
func (c *course) cause(r *journal.Record, input string) {
	if got := r.Metadata[aggregate.CausationIDKey]; got != input {
		c.find("remembers %s after %s as caused by %s, not by %s", r.EventType, c.at.Last, got, input)
	}
}

func (c *course) command(a act, input string, place int) {
	c.sent++
	want := sent{c.derived(input, "command "+strconv.Itoa(place)), input}
	got, known := c.oracle.commands[commandKey{c.group, c.id.Value, a}]
	handled, done := c.oracle.handled[handledKey{c.group, a.source}]
	// An event with a stored step may be removed before it is handled.
	removed := !done && a.Number < c.oracle.removedOf(a.stream()).before()
	switch {
	case !known:
		c.find("did not send the command %s", a)
	case a.Woken == 0 && got.at > handled && !removed:
		c.find("has sent the command %s at %v, but its event had been handled at %v", a, got.at, handled)
	case got.sent != want:
		c.find("has sent the command %s under the id %s for %s, not %s for %s", a, got.id, got.cause, want.id, want.cause)
	}
}

// derived derives ids as package process does. If package process changed them, pending commands
// would get other ids from a program of a new version.
func (c *course) derived(input, what string) string {
	space := uuid.MustParse("6c9c8a5e-0d1f-4e43-9a55-5e0b8d0f7a31")
	return uuid.NewSHA1(space, []byte(strings.Join([]string{c.id.Type, c.id.Value, input, what}, "\x00"))).String()
}

func (c *course) find(format string, args ...any) {
	c.wrong = true
	c.oracle.find(Effect, "%s "+format, append([]any{c.id}, args...)...)
}
