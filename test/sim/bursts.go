package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/draw"
)

// burstPlan holds the random choices for processes that work in bursts.
type burstPlan struct {
	lasts  time.Duration // the longest time until the deadline of a burst
	sweeps time.Duration // between two sweeps of a process
	crash  float64       // probability that the process crashes in a burst
}

func newBurstPlan(r *rand.Rand) burstPlan {
	return burstPlan{
		lasts:  draw.Pick(r, time.Second, 3*time.Second, 10*time.Second),
		sweeps: draw.Pick(r, 3*time.Second, 10*time.Second, time.Minute),
		crash:  draw.Pick(r, 0.02, 0.1),
	}
}

// calmBursts are the bursts at the end of a world.
var calmBursts = burstPlan{lasts: 50 * time.Second, sweeps: time.Minute}

// bursts are the work of a process that runs one burst after the other: one with the hints that
// have arrived, and a sweep when it is due.
type bursts struct {
	*life
	ctx     context.Context // of the bursts
	stop    context.CancelFunc
	ended   chan struct{}
	arrived chan struct{} // signals hints

	mu    sync.Mutex
	hints []subscriber.Hint
}

func newBursts(l *life) *bursts {
	b := &bursts{life: l, ended: make(chan struct{}), arrived: make(chan struct{}, 1)}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// hint adds a hint for the next burst.
func (b *bursts) hint(id aggregate.ID, version uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hints = append(b.hints, subscriber.Hint{Aggregate: id, Version: version})
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

func (b *bursts) take() (hints []subscriber.Hint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	hints, b.hints = b.hints, nil
	return hints
}

// run runs bursts until the process stops or dies.
func (b *bursts) run() {
	defer close(b.ended)
	b.wire.inBursts = true
	name, sweep := b.member.name, time.NewTimer(0)
	defer sweep.Stop()
	for n := 1; ; n++ {
		var hints []subscriber.Hint
		plan := b.plan()
		select {
		case <-sweep.C:
			sweep.Reset(plan.sweeps)
		case <-b.arrived:
			hints = b.take()
		case <-b.ctx.Done():
		}
		if b.wire.gate(b.ctx) != nil || b.ctx.Err() != nil {
			return
		}
		lasts := between(b.process.random, plan.lasts/4, plan.lasts)
		// In the oracle's view each burst is another member, because memory does not survive it.
		b.beMember(fmt.Sprint(name, "/", n), lasts)
		b.wire.member = b.member
		b.burst(subscriber.Burst{Hints: hints}, lasts)
	}
}

func (b *bursts) plan() burstPlan {
	if b.process.world.isCalm() {
		return calmBursts
	}
	return b.process.world.plan.disruption.bursts
}

func (b *bursts) burst(burst subscriber.Burst, lasts time.Duration) {
	w, r, start := b.process.world, b.process.random, time.Now()
	ctx, cancel := context.WithTimeout(b.ctx, lasts)
	defer cancel()
	if b.happens(b.plan().crash) {
		defer time.AfterFunc(draw.UpTo(r, draw.Pick(r, 20*time.Millisecond, 200*time.Millisecond, lasts)), func() { b.crashIn("a burst") }).Stop()
	}
	if b.sagas != nil {
		burst.Also = append(burst.Also, func(ctx context.Context) error {
			_, err := b.sagas.Fire(ctx)
			return err
		})
	}
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err == nil {
		err = b.subscribe()
	}
	if err != nil {
		w.oracle.find(Slow, "%s cannot begin a burst: %v", b.member.name, err)
		return
	}
	for _, topic := range w.plan.topics {
		router.AddConsumerHandler(topic, topic, b.sub, b.consumeOne)
	}
	kind := "sweeps"
	if len(burst.Hints) > 0 {
		kind = "hinted bursts"
	}
	left, err := burst.Run(ctx, router)
	w.oracle.note(fmt.Sprintf("%s end, %d left, failed %v", kind, left.Aggregates, err != nil), b.member.name)
	w.oracle.count(kind, 1)
	if left.Aggregates > 0 {
		w.oracle.count(kind+" that leave something", 1)
	}
	if took := time.Since(start); took > lasts+time.Millisecond {
		w.oracle.find(Slow, "%s took %v for a burst, more than %v", b.member.name, took, lasts)
	}
	b.countStats()
	if w.plan.sabotage == Presume && len(burst.Hints) > 0 {
		w.presume(b.member)
	}
}

var errOver = fmt.Errorf("sim: the burst is over")

// consumeOne is the handler of a router. The answer of [life.handle] to the message is final.
func (b *bursts) consumeOne(msg *message.Message) error {
	if b.wire.gate(context.Background()) != nil || msg.Context().Err() != nil {
		return errOver
	}
	b.receive(msg)
	b.handle(msg)
	if b.wire.isDead() {
		return errDead
	}
	return nil
}

// sweepUp ends all processes, and checks that a few sweeps handle everything.
func (w *world) sweepUp(ctx context.Context, operator *operator, heads map[stream]uint64) error {
	w.closeAll()
	// The leases of those that have crashed end by the clock.
	pauseFor(ctx, w.plan.longestAbsence()+2*w.plan.longestLease()+5*time.Second)
	begun := map[string]bool{}
	for _, p := range w.processes {
		if !begun[p.group.name] {
			begun[p.group.name] = true
			if err := p.start(ctx, true); err != nil {
				return err
			}
		}
	}
	w.oracle.note("sweep up", "")
	pauseFor(ctx, calmBursts.lasts) // the first sweep makes groups that do not exist yet
	if w.plan.misplaces() {
		if err := operator.reconcileAll(ctx); err != nil {
			return err
		}
	}
	last, idle := -1, 0
	for n := 0; ctx.Err() == nil && w.oracle.complete(); n++ {
		pending := w.pending(heads)
		if pending == 0 {
			w.oracle.count(fmt.Sprintf("worlds with %d sweeps at the end", n), 1)
			break
		}
		if now := w.oracle.progress(); now != last {
			last, idle = now, 0
		} else if idle++; idle == mostIdleSweeps {
			w.oracle.find(Lost, "%d sweeps have handled nothing, and %d events are left", idle, pending)
		}
		pauseFor(ctx, calmBursts.sweeps)
	}
	w.closeAll()
	return nil
}

// mostIdleSweeps is the number of sweeps, one after the other, that may handle nothing: they wait
// for another attempt.
const mostIdleSweeps = 3
