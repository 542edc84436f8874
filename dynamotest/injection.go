package dynamotest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// Injection is an injected fault. It is safe for concurrent use.
type Injection struct {
	of         *injector
	fault      Fault
	operations []string
	table      string
	index      string
	key        value.Item
	match      func(string, any) bool
	after      int
	times      int
	chance     float64
	draws      draws

	mu    sync.Mutex
	seen  int
	fired int
}

// Inject injects a fault. Without conditions it happens to every call to which it can happen,
// including calls on tables. Several faults can happen to one call. If several of them end the
// call, the one that was injected first does. A condition that makes no sense, such as an operation
// that does not exist, panics, because the test would otherwise pass without its fault.
func (f *injector) Inject(fault Fault, when ...When) *Injection {
	i := &Injection{of: f, fault: fault, times: -1, chance: 1}
	for _, condition := range when {
		condition(i)
	}
	i.check()
	f.mu.Lock()
	defer f.mu.Unlock()
	i.draws = draws{of: f, injection: f.injected, counts: map[uint64]uint64{}}
	f.injected++
	all := append(slices.Clone(*f.injections.Load()), i)
	f.injections.Store(&all)
	f.remember(all)
	return i
}

// Remove removes the fault. Requests that [Late] has delayed stay delayed.
func (i *Injection) Remove() {
	i.of.mu.Lock()
	defer i.of.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(*i.of.injections.Load()), func(other *Injection) bool { return other == i })
	i.of.injections.Store(&left)
	i.of.remember(left)
}

// Fired returns how many calls the fault has happened to, or for [DelayIndex] to how many changes.
func (i *Injection) Fired() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.fired
}

// Storm injects the faults of this package, each with a chance at each call, except [Refuse],
// [Hide], [Pause] and [PauseReply], which need arguments. [Latency] and [Hold] wait for up to a
// millisecond. [Tear] waits for 30 ms, so that subscribers can see an event before the other items
// of its transaction. Indexes lag, late requests arrive and reads are stale by up to 100 ms.
// Conflicts reach the caller, because the SDK does not retry them. Calm removes the faults, and
// lets delayed requests arrive.
func (f *injector) Storm(chance float64) (calm func()) {
	var all []*Injection
	for _, fault := range []Fault{
		Throttle(), InternalError(), Conflict(), CutConnection(), LoseReply(), Unprocessed(1), SmallPages(1),
		Latency(0, time.Millisecond), Hold(For(time.Millisecond)), Tear(For(30 * time.Millisecond)), DelayIndex(0, 100*time.Millisecond),
		LateBy(0, 100*time.Millisecond), Congestion(0, 100*time.Millisecond), StaleReads(0, 100*time.Millisecond),
	} {
		if fault.inside && f.isRemote {
			continue
		}
		all = append(all, f.Inject(fault, Chance(chance)))
	}
	return func() {
		for _, i := range all {
			i.Remove()
			i.Arrive()
		}
	}
}

// paused is the key of a context in which a pause of the injection runs.
type paused struct{ by *Injection }

// meet applies the fault to a call if its conditions hold. An error means that this cannot be
// decided.
func (i *Injection) meet(ctx context.Context, p *plan, operation string, in any) error {
	if ctx.Value(paused{i}) != nil {
		return nil
	}
	hits, err := i.hits(ctx, p, operation, in)
	if i.isSpent() {
		return nil
	}
	if err != nil || hits == nil {
		return err
	}
	random := i.draws.random(operation, in, p.touches)
	if i.chance < 1 && random().Float64() >= i.chance {
		return nil
	}
	s := strike{by: i, operation: operation, input: in, hits: hits, random: random}
	s.pause = func(ctx context.Context, do func(context.Context)) {
		if i.fire(func() bool { return true }) { // another call may have been first
			p.happens(i.fault.name)
			do(context.WithValue(ctx, paused{i}, true))
		}
	}
	if i.fault.waits { // it is counted when the call reaches its pause
		if !i.passes() {
			i.fault.strike(p, s)
		}
		return nil
	}
	if i.fire(func() bool { return i.fault.strike(p, s) }) {
		p.happens(i.fault.name)
	}
	return nil
}

// hits returns the indexes of the call's touches that the fault affects. The result is nil if the
// conditions do not hold, and empty for a call without touches. An error means that a condition
// needs a table that the proxy cannot describe.
func (i *Injection) hits(ctx context.Context, p *plan, operation string, in any) (hits []int, err error) {
	if i.fault.strike == nil || i.fault.on != nil && !slices.Contains(i.fault.on, operation) ||
		i.operations != nil && !slices.Contains(i.operations, operation) {
		return nil, nil
	}
	hits = []int{}
	for n, touch := range p.touches {
		concerned, unknown := i.concerns(ctx, touch, p.undescribed)
		if concerned {
			hits = append(hits, n)
		}
		if err == nil {
			err = unknown
		}
	}
	if err == nil && len(hits) == 0 && (len(p.touches) > 0 || i.table != "" || i.index != "" || i.key != nil) {
		return nil, nil
	}
	if i.match != nil && !i.match(operation, in) {
		return nil, nil
	}
	return hits, err
}

// concerns reports whether the conditions on tables, indexes and keys hold for a touch. Undescribed
// maps names of tables to the errors with which they could not be described.
func (i *Injection) concerns(ctx context.Context, touch engine.Touch, undescribed map[string]error) (bool, error) {
	if i.table != "" && i.table != touch.Table {
		return false, nil
	}
	if i.index != "" && i.index != touch.Index {
		if !i.fault.pushesBack || !touch.Writes {
			return false, nil
		}
		if has, err := i.of.to.hasIndex(ctx, touch.Table, i.index); err != nil || !has {
			return false, err
		}
	}
	usesKey := i.key != nil || i.chance < 1
	if err := undescribed[touch.Table]; err != nil && usesKey && touch.Writes && touch.Key == nil {
		return false, err
	}
	return i.key == nil || i.has(touch.Key), nil
}

func (i *Injection) has(key value.Item) bool {
	key, err := value.NormalizeItem(key)
	if err != nil {
		return false
	}
	for name, v := range i.key {
		if !value.Equal(v, key[name]) {
			return false
		}
	}
	return true
}

// isSpent reports whether the fault has happened often enough.
func (i *Injection) isSpent() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.times >= 0 && i.fired >= i.times
}

// passes reports whether the call is one of those before the fault starts to happen; see [After].
func (i *Injection) passes() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen < i.after {
		i.seen++
		return true
	}
	return false
}

// fire applies the fault, unless it has happened often enough or [After] lets the call pass.
func (i *Injection) fire(strike func() bool) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.times >= 0 && i.fired >= i.times {
		return false
	}
	if i.seen < i.after {
		i.seen++
		return false
	}
	if !strike() {
		return false
	}
	i.fired++
	return true
}

// indexDelay returns the delay of a change to an index: the longest delay of the injected faults.
func (f *injector) indexDelay(table, index string, key func() value.Item) time.Duration {
	var longest time.Duration
	for _, i := range *f.injections.Load() {
		if i.fault.delay == nil {
			continue
		}
		touch := engine.Touch{Table: table, Index: index, Key: key()}
		if concerned, err := i.concerns(context.Background(), touch, nil); err != nil || !concerned {
			continue
		}
		random := i.draws.random("", nil, []engine.Touch{touch})
		if i.chance < 1 && random().Float64() >= i.chance {
			continue
		}
		if i.fire(func() bool { return true }) {
			longest = max(longest, i.fault.delay(random()))
		}
	}
	return longest
}

// neverFired returns the names of injected faults that did not happen.
func (f *injector) neverFired() []string {
	var names []string
	for _, i := range *f.injections.Load() {
		if i.Fired() == 0 {
			names = append(names, i.fault.name)
		}
	}
	return names
}
