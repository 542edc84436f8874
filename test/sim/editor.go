package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/test/draw"
)

// An editor is an operator that edits several aggregates while members work on them: some of one
// shard, one by one, or all selected parked aggregates of any shard. Two editors work concurrently.
// When they edit one by one, each has its own aggregates, because one must not skip events that the
// other resets. Groups that park have no resets.

// editors is the number of editors.
const editors = 2

// editKind is the kind of an edit.
type editKind string

const (
	skipNext editKind = "edit skip"
	resetTo  editKind = "edit reset"
	unpark   editKind = "edit unpark"
)

// aggregateEdit is one edit of an aggregate.
type aggregateEdit struct {
	kind editKind
	id   aggregate.ID
	// The event to skip, or the position to reset to.
	number uint64
}

// editsOf returns the kind of edits for a group, or "" for none. Events are not skipped in groups
// with sagas, since a saga may have taken a step on them, and commands are sent once for each
// event. A group that skips events by itself has no resets, since a reset removes the records of
// skipped events.
func (p *plan) editsOf(g *groupPlan) editKind {
	switch {
	case g.failures.policy == parks:
		return unpark
	case g.handlers.sagas:
		return ""
	case g.failures.policy == blocks && g.name != "g2":
		return resetTo
	default:
		return skipNext
	}
}

// edit edits aggregates repeatedly until ctx ends.
func (o *operator) edit(ctx context.Context, place int, every time.Duration) {
	plan := o.world.plan
	for ctx.Err() == nil {
		pauseFor(ctx, exponential(o.random, every))
		group, topic := &plan.groups[o.random.IntN(len(plan.groups))], draw.Pick(o.random, plan.topics...)
		if plan.editsOf(group) == unpark && o.random.IntN(2) == 0 {
			o.editAll(ctx, group, topic)
			continue
		}
		edits := o.someEdits(ctx, place, group, topic)
		if len(edits) == 0 || ctx.Err() != nil {
			continue
		}
		end := o.delayRequests(ctx, group.name)
		o.editShard(ctx, group.name, edits)
		end()
	}
}

// someEdits draws edits of aggregates of one shard.
func (o *operator) someEdits(ctx context.Context, place int, group *groupPlan, topic string) (edits []aggregateEdit) {
	kind := o.world.plan.editsOf(group)
	if kind == "" {
		return nil
	}
	parked := map[string]uint64{}
	if kind == unpark {
		for _, event := range o.waiting(ctx, group, topic) {
			parked[event.id.Value] = event.number
		}
	}
	journal := o.world.journal.Internal()
	shard, most := -1, 1+o.random.IntN(6)
	for _, n := range o.random.Perm(o.world.plan.aggregates) {
		id := aggregate.ID{Type: topic, Value: fmt.Sprint("a", n)}
		at := journal.Shard(id)
		position, known := o.world.oracle.positionOf(stream{group.name, topic, id.Value})
		if n%editors != place || shard >= 0 && at != shard || !known {
			continue
		}
		e := aggregateEdit{kind: kind, id: id}
		switch number, is := parked[id.Value]; {
		case kind == unpark && !is:
			continue
		case kind == unpark && o.random.IntN(3) == 0 && !group.handlers.sagas:
			e.kind, e.number = skipNext, number
		case kind == unpark:
			o.world.repair(stream{group.name, topic, id.Value}, number)
		case kind == skipNext:
			e.number = position + 1
		case kind == resetTo:
			e.number = position - min(position, o.random.Uint64N(30))
		}
		if edits, shard = append(edits, e), at; len(edits) == most {
			break
		}
	}
	return edits
}

// editAll edits all parked aggregates of a group that a selection matches: they continue with the
// failed events, which are repaired, or without them.
func (o *operator) editAll(ctx context.Context, group *groupPlan, topic string) {
	if len(o.waiting(ctx, group, topic)) == 0 || ctx.Err() != nil {
		return
	}
	w := o.world
	skips := o.random.IntN(2) == 0 && !group.handlers.sagas
	edited, selection := 0, drawSelection(o.random)
	selection.Edited = func(id aggregate.ID, number uint64) {
		edited++
		w.touch()
		if !skips {
			w.repair(stream{group.name, topic, id.Value}, number)
		}
		if t := selection.EventType; t != "" && t != eventType(number) {
			w.oracle.find(Passed, "an operator edits %s #%d, but has selected events of type %s", id, number, t)
		}
	}
	g := o.groups.Of(group.name, topic)
	all, what := g.UnparkAll, "edit unpark all"
	if skips {
		all, what = g.SkipAll, "edit skip all"
	}
	end := o.delayRequests(ctx, group.name)
	w.touch()
	n, err := all(ctx, selection)
	w.touch()
	end()
	if n != edited {
		w.oracle.find(Passed, "an operator got the result that %d aggregates of %s were edited, and %d of which", n, group.name, edited)
	}
	if err == nil {
		w.oracle.note(what, group.name)
	}
	w.oracle.count("edited by "+what, n)
}

// drawSelection draws a selection of parked aggregates, usually all of them.
func drawSelection(r *rand.Rand) groups.Selection {
	return draw.Pick(r, groups.Selection{}, groups.Selection{}, groups.Selection{Reason: "nacked"},
		groups.Selection{EventType: happened{}.EventType()}, groups.Selection{EventType: noticed{}.EventType()})
}

// editShard makes edits of one shard, one aggregate at a time, each under its own epoch.
func (o *operator) editShard(ctx context.Context, group string, edits []aggregateEdit) {
	for _, e := range edits {
		if ctx.Err() != nil {
			return
		}
		o.editOne(ctx, group, e)
	}
}

func (o *operator) editOne(ctx context.Context, group string, e aggregateEdit) {
	o.world.touch()
	defer o.world.touch()
	var err error
	switch e.kind {
	case skipNext:
		err = o.groups.Skip(ctx, group, e.id, e.number)
	case unpark:
		err = o.groups.Unpark(ctx, group, e.id)
	case resetTo:
		err = o.groups.ResetAggregate(ctx, group, e.id, e.number)
	}
	if err == nil {
		o.world.oracle.note(string(e.kind), group)
	}
}

// touch records that an operator takes a shard from its owner.
func (w *world) touch() { w.edited.Store(time.Now().UnixNano()) }

// wasEdited reports whether an operator has taken a shard recently.
func (w *world) wasEdited(last time.Duration) bool {
	return time.Since(time.Unix(0, w.edited.Load())) <= last
}

// delayRequests delays the writes of members of a group until after the next edit, if the world has
// late requests. It waits until some of the members have written.
func (o *operator) delayRequests(ctx context.Context, group string) (end func()) {
	if !o.world.plan.disruption.has(Lateness) {
		return func() {}
	}
	var ends []func()
	for _, p := range o.world.processes {
		if l := p.life; l != nil && p.group.name == group {
			ends = append(ends, l.wire.delay(o.random))
		}
	}
	pauseFor(ctx, draw.UpTo(o.random, 2*time.Second))
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// longestDelay is the maximum delay of a request. A sender cancels it after five seconds.
const longestDelay = 8 * time.Second

// delay delays half of the writes to the checkpoint table until end is called, and returns end. For
// some of them the sender sees a cut connection; for the others it waits for the reply until it
// cancels the request.
func (w *wire) delay(random *rand.Rand) (end func()) {
	r := draw.Derive(random)
	fault := dynamotest.Congestion(100*time.Millisecond, longestDelay)
	if r.IntN(2) == 0 {
		fault = dynamotest.LateBy(100*time.Millisecond, longestDelay)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.proxy == nil || w.isDead() {
		return func() {}
	}
	injection := w.faults.Inject(w.proxy, fault, dynamotest.On("UpdateItem", "DeleteItem", "TransactWriteItems"),
		dynamotest.Matching(func(_ string, in any) bool { return isCheckpoint(in) && r.IntN(2) == 0 }))
	return func() {
		injection.Remove()
		w.oracle.count("delayed", injection.Fired())
	}
}
