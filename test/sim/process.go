package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

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
}

// life is the time of a process from its start to its end. Nothing in memory survives it.
type life struct {
	process *process
	member  *member
	wire    *wire
	journal *journal.Journal
	effects *projection.Projection // nil without a projection
	sagas   *pm.Manager[saga]      // nil without sagas
	sub     *subscriber.Subscriber

	endSagas func()
	wandered time.Duration // how far the clock of the sagas has moved

	mu     sync.Mutex
	random *rand.Rand
	calm   bool
}

// start starts a life. An error means that too many requests failed.
func (p *process) start(ctx context.Context) error {
	w := p.world
	p.lives++
	lease := p.group.config.Timing.LeaseDuration
	l := &life{process: p, random: draw.Derive(p.random), calm: w.isCalm(), endSagas: func() {}}
	l.member = &member{
		name: fmt.Sprintf("%s.%d", p.name, p.lives), group: p.group.name,
		born: w.trace.now(), notices: lease + noticeSlack,
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

func (l *life) open(ctx context.Context) (err error) {
	w := l.process.world
	client := l.wire.client(w.db)
	if l.journal, err = w.open(ctx, client, l.process.clock); err != nil {
		return err
	}
	if w.broker != nil {
		w.broker.join(l)
	}
	config := l.process.group.config
	config.Journal = l.journal
	if l.process.group.handlers.projection {
		if l.effects, err = effects(client, l.member.group, l.process.group.handlers.runs); err != nil {
			return err
		}
	}
	if l.process.group.handlers.sagas {
		if err := l.openSagas(client); err != nil {
			return err
		}
		l.runSagas()
	}
	sub, err := subscriber.NewSubscriber(config, &logger{oracle: w.oracle, member: l.member})
	if err != nil {
		return err
	}
	l.sub = sub
	for _, topic := range w.plan.topics {
		messages, err := l.sub.Subscribe(context.Background(), topic)
		if err != nil {
			return err
		}
		go l.consume(messages)
	}
	return nil
}

// kill ends a life as a crash does: no request gets through any more. Its memory is freed.
func (l *life) kill() {
	close(l.wire.dead)
	l.endSagas()
	if l.sub != nil {
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
	err := l.sub.Close()
	took := time.Since(start)
	w.oracle.note("closed", l.member.name)
	w.oracle.count("reconciled", int(l.sub.Stats().Reconciled))
	w.oracle.count("expired", int(l.sub.Stats().Expired))
	w.oracle.count("corrupt", int(l.sub.Stats().Corrupt))
	w.oracle.count("truncated", int(l.sub.Stats().Truncated))
	w.oracle.count("hint reads", int(l.sub.Stats().HintReads))
	w.oracle.count("unannounced", int(l.sub.Stats().Unannounced))
	if err != nil {
		w.oracle.find(Slow, "%s cannot be closed: %v", l.member.name, err)
	}
	c := l.process.group.config
	if most := c.CloseTimeout + c.Timing.LeaseDuration + closeSlack; took > most {
		w.oracle.find(Slow, "%s took %v to close, more than %v", l.member.name, took, most)
	}
	l.endSagas()
	close(l.wire.dead)
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
