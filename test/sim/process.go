package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/journal"
	pm "github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/draw"
)

// process is a program that subscribes as a member of a group to all topics, and perhaps writes. It
// lives one life after another.
type process struct {
	world  *world
	name   string
	group  *groupPlan
	clock  *clock
	random *rand.Rand
	lives  int
	life   *life // nil between two lives
	bursts bool  // whether it worked in bursts in its last life
}

// life is the time of a process from its start to its end. Nothing in memory survives it.
type life struct {
	process *process
	member  *member
	wire    *wire
	journal *journal.Journal
	effects *projection.Projection       // nil without a projection
	apply   func(*message.Message) error // of a read model that is built again
	sagas   *pm.Manager[saga]            // nil without sagas
	sub     *subscriber.Subscriber
	bursts  *bursts // nil for a process that runs for long

	endSagas func()
	wandered time.Duration // how far the clock of the sagas has moved

	mu     sync.Mutex
	random *rand.Rand
	calm   bool
}

// start starts a life, in which the process perhaps works in bursts. An error means that too many
// requests failed.
func (p *process) start(ctx context.Context, inBursts bool) error {
	w := p.world
	p.lives++
	p.bursts = inBursts
	l := &life{process: p, random: draw.Derive(p.random), calm: w.isCalm(), endSagas: func() {}}
	l.beMember(fmt.Sprintf("%s.%d", p.name, p.lives), p.group.config.Timing.LeaseDuration)
	if inBursts {
		l.bursts = newBursts(l)
	}
	l.wire = w.wire(l.member, draw.Derive(p.random))
	if d := w.plan.disruption; d.straggling > 0 && !l.calm {
		l.wire.stragglers = &stragglers{
			random: draw.Derive(w.disturbance), chance: d.straggling, most: 3 * d.outage, held: map[string]*straggler{},
			begun: func(s stream) { go l.strike(ctx, s) }, arrived: func(s stream) { go l.abandon(ctx, s) },
		}
	}
	w.oracle.note("start", l.member.name)
	if err := l.open(ctx); err != nil {
		w.oracle.note("stillborn", l.member.name)
		l.kill()
		return err
	}
	p.life = l
	return nil
}

// beMember makes the life a member, as the oracle sees it, whose lease has a length.
func (l *life) beMember(name string, lease time.Duration) {
	l.member = &member{name: name, group: l.process.group.name, born: l.process.world.trace.now(), notices: lease + noticeSlack}
}

func (l *life) open(ctx context.Context) (err error) {
	w := l.process.world
	client := l.wire.client(w.db)
	if l.journal, err = w.open(ctx, client, l.process.clock); err != nil {
		return err
	}
	if w.broker != nil {
		w.broker.join(l)
	}
	if l.process.group.handlers.projection {
		if l.effects, err = effects(client, l.member.group, l.process.group.handlers.runs); err != nil {
			return err
		}
	}
	if l.process.group.handlers.sagas {
		if err := l.openSagas(client); err != nil {
			return err
		}
	}
	if l.bursts != nil {
		go l.bursts.run()
		return nil
	}
	if l.sagas != nil {
		l.runSagas()
	}
	if err := l.subscribe(); err != nil {
		return err
	}
	for _, topic := range w.plan.topics {
		messages, err := l.sub.Subscribe(context.Background(), topic)
		if err != nil {
			return err
		}
		go l.consume(messages)
	}
	return nil
}

// subscribe makes a subscriber.
func (l *life) subscribe() (err error) {
	config := l.process.group.config
	config.Journal = l.journal
	l.sub, err = subscriber.NewSubscriber(config, &logger{oracle: l.process.world.oracle, member: l.member})
	return err
}

// kill ends a life as a crash does: no request gets through any more. Its memory is freed.
func (l *life) kill() {
	close(l.wire.dead)
	l.endSagas()
	if l.bursts != nil {
		l.bursts.stop()
	} else if l.sub != nil {
		go func() { _ = l.sub.Close() }()
	}
}

// close ends a life normally, and measures how long that takes.
func (l *life) close() {
	w := l.process.world
	l.wire.prepare(nil)
	// A suspended process does not close.
	_ = l.wire.gate(context.Background())
	start := time.Now()
	if l.bursts != nil {
		l.bursts.stop()
		<-l.bursts.ended
	} else if err := l.sub.Close(); err != nil {
		w.oracle.find(Slow, "%s cannot be closed: %v", l.member.name, err)
	} else {
		l.countStats()
	}
	took := time.Since(start)
	w.oracle.note("closed", l.member.name)
	c := l.process.group.config
	if most := c.CloseTimeout + c.Timing.LeaseDuration + closeSlack; took > most {
		w.oracle.find(Slow, "%s took %v to close, more than %v", l.member.name, took, most)
	}
	l.endSagas()
	close(l.wire.dead)
}

// countStats counts what the subscriber has counted.
func (l *life) countStats() {
	o, stats := l.process.world.oracle, l.sub.Stats()
	o.count("reconciled", int(stats.Reconciled))
	o.count("expired", int(stats.Expired))
	o.count("corrupt", int(stats.Corrupt))
	o.count("truncated", int(stats.Truncated))
	o.count("hint reads", int(stats.HintReads))
	o.count("unannounced", int(stats.Unannounced))
}

const (
	// noticeSlack is the time for which a member may continue after its lease. By its own clock it
	// stops then. Other members wait for LeaseDuration after they have read its last heartbeat,
	// which they do later than the member sends it.
	noticeSlack = 100 * time.Millisecond
	// closeSlack is the time that Close may take with faults, in addition to CloseTimeout and the
	// two requests to the membership of half a LeaseDuration each: to store the positions and the
	// cursors, and to leave, 5 seconds each.
	closeSlack = 15 * time.Second
)

// calmDown ends the random trouble inside a process.
func (l *life) calmDown() {
	l.mu.Lock()
	l.calm = true
	l.mu.Unlock()
	l.wire.calm()
}

// open opens the journal for a process with a clock.
func (w *world) open(ctx context.Context, client *dynamodb.Client, c *clock) (*journal.Journal, error) {
	j, err := journal.Open(ctx, client, journal.Config{
		RetryBudget: w.plan.trailing / 8,
		Now:         c.now,
	})
	if err == nil && w.broker != nil {
		w.broker.watch(j)
	}
	return j, err
}

func (w *world) wire(m *member, r *rand.Rand) *wire {
	q := w.plan.quality
	if w.isCalm() {
		q = quality{latency: q.latency}
	}
	var removals time.Duration
	if d := w.plan.disruption; d.outage > 0 && m.group != "" && !w.isCalm() {
		removals = 2 * d.outage
	}
	return w.wires.add(&wire{
		removals: removals,
		oracle:   w.oracle, member: m, random: r, quality: q, dead: make(chan struct{}), terms: map[string]bool{}, known: map[string]string{},
		sabotage: w.plan.sabotage, trailing: w.plan.trailing,
	})
}
