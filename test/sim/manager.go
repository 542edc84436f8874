package sim

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	pm "github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/test/draw"
)

func (l *life) openSagas(client pm.Client) (err error) {
	plan := l.process.world.plan.sagas
	l.moveClock()
	l.sagas, err = pm.New(l.journal, client, l.defineSagas(), pm.Config{
		Publisher: commandWire{l}, Marshaler: cqrs.JSONMarshaler{},
		GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "commands", nil },
		Queues:               1 + l.process.lives%plan.queues, PollInterval: plan.polls, RetryAfter: plan.retry,
		Now: l.sagaTime,
	})
	return err
}

// runSagas fires timeouts until the life ends.
func (l *life) runSagas() {
	ctx, stop := context.WithCancel(context.Background())
	l.endSagas = stop
	go func() { _ = l.sagas.Run(ctx) }()
}

// sagaTime returns the time of the clock of the sagas.
func (l *life) sagaTime() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.process.clock.now().Add(l.wandered)
}

// moveClock moves the clock of the sagas forward or back.
func (l *life) moveClock() {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.process.world.plan.sagas.wander
	l.wandered = draw.UpTo(l.random, 2*most) - most
}

var errReaction = errors.New("sim: the reaction fails")

// think is the work of a reaction besides its result: it takes time, and may fail.
func (l *life) think() error {
	plan := l.process.world.plan.sagas
	if l.happens(0.05) {
		l.moveClock()
	}
	if l.happens(0.2) {
		if err := l.wire.wait(context.Background(), draw.UpTo(l.random, plan.think)); err != nil {
			return err
		}
	}
	if l.happens(plan.fail) {
		l.process.world.oracle.note("reaction fails", l.member.name)
		return errReaction
	}
	return l.crash(plan.crash)
}

// happens draws whether something happens. Nothing happens after the storm.
func (l *life) happens(chance float64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.calm && l.random.Float64() < chance
}

// crash ends the life immediately, with a probability.
func (l *life) crash(chance float64) error {
	if l.process.life == l && l.happens(chance) {
		l.crashIn("a saga")
	}
	if l.wire.isDead() {
		return errDead
	}
	return nil
}

// crashIn ends the life immediately, in some work, unless it has ended or all is calm.
func (l *life) crashIn(work string) {
	if w := l.process.world; l.process.life == l && !w.isCalm() {
		w.oracle.note("crash", l.member.name)
		w.oracle.count("crash amid "+work, 1)
		l.process.life = nil
		l.kill()
	}
}

// commandWire is a publisher whose messages travel as requests do.
type commandWire struct{ *life }

func (c commandWire) Publish(_ string, messages ...*message.Message) error {
	w := c.process.world
	for _, msg := range messages {
		if err := c.crash(w.plan.sagas.crash); err != nil {
			return err
		}
		network := c.wire.quality.network
		if err := c.wire.travel(msg.Context(), c.wire.draw().there); err != nil {
			return err
		}
		if c.happens(network.Cut + w.plan.sagas.cut) {
			w.oracle.note("cut", c.member.name)
			return errors.New("sim: cut before the command arrived")
		}
		if w.plan.sabotage == Reissue {
			msg = msg.Copy()
			msg.UUID = uuid.NewString()
		}
		c.arrive(msg)
		if c.happens(network.Lost + w.plan.sagas.lost) {
			w.oracle.note("lose", c.member.name)
			return errors.New("sim: cut before the reply to the command arrived")
		}
		if err := c.crash(w.plan.sagas.crash); err != nil {
			return err
		}
	}
	return nil
}

func (commandWire) Close() error { return nil }

// arrive reports a command to the oracle, and whether its step is stored.
func (c commandWire) arrive(msg *message.Message) {
	w := c.process.world
	var a act
	if err := json.Unmarshal(msg.Payload, &a); err != nil {
		w.oracle.find(Effect, "%s sends a command that cannot be read: %v", c.member.name, err)
		return
	}
	id := aggregate.ID{Type: sagaType(c.member.group), Value: msg.Metadata.Get("aggregate_id")}
	cause := msg.Metadata.Get(aggregate.CausationIDKey)
	_, stored, err := w.journal.Internal().Command(context.Background(), id, cause)
	if err == nil && !stored {
		w.oracle.find(Effect, "%s sends a command before its step is stored: %s", c.member.name, a)
	}
	w.oracle.command(c.member, commandKey{c.member.group, id.Value, a}, sent{msg.UUID, cause})
}

// sent holds the parts of a command that must be the same each time that it is sent.
type sent struct{ id, cause string }

// arrived is the first delivery of a command.
type arrived struct {
	sent
	at time.Duration
}

// handledKey is an event that the process managers of a group have handled.
type handledKey struct {
	group string
	source
}

// handles records that a process manager has handled an event: its step is stored and its commands
// are sent.
func (o *oracle) handles(s stream, number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := handledKey{s.group, source{s.topic, s.id, number}}
	if _, again := o.handled[key]; !again {
		o.handled[key] = o.trace.now()
	}
}

type commandKey struct {
	group, saga string
	act
}

// command records a command that has arrived.
func (o *oracle) command(m *member, key commandKey, got sent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace.note("command", m.name, stream{m.group, key.Topic, key.ID}, key.Number)
	known, again := o.commands[key]
	if again {
		o.trace.seen["command again"]++
		if known.sent != got {
			o.finding(Effect, "%s sends the command %s of saga %s under the id %s for %s, and before it was %s for %s", m.name, key, key.saga, got.id, got.cause, known.id, known.cause)
		}
		return
	}
	if before := key; key.Place > 0 {
		before.Place--
		if _, ok := o.commands[before]; !ok {
			o.finding(Effect, "%s sends the command %s of saga %s, and the one before it was not sent", m.name, key, key.saga)
		}
	}
	o.commands[key] = arrived{got, o.trace.now()}
	o.commanded[stream{group: key.group, id: key.saga}]++
}
