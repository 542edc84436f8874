package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	pm "github.com/millrace-dev/millrace/process"
)

// A saga follows one aggregate: it takes a step on each of its events that happened, commands something for each, and sets its
// timeout anew. When nothing more happens for a while it wakes up.

type saga struct{ Last uint64 }

type (
	stepped struct{ Number uint64 }
	woken   struct{ After uint64 } // no step but that of this event for a while
	act     struct {
		Number uint64
		Woken  bool
	}
)

func (stepped) EventType() string { return "stepped" }
func (woken) EventType() string   { return "woken" }
func (e stepped) Apply(s *saga)   { s.Last = e.Number }
func (woken) Apply(*saga)         {}

const (
	nap         = 3 * time.Second // until a saga wakes up
	sagaRetry   = 2 * time.Second // until somebody else sends what was not sent
	sagaPolls   = 500 * time.Millisecond
	sagaPrefix  = "saga."
	sagaTimeout = "nap"
)

func sagaType(group string) string { return sagaPrefix + group }

func sagaID(topic, id string) string { return topic + "." + id }

func sagaOf(group string) pm.Definition[saga] {
	return pm.Define(aggregate.Define[saga](sagaType(group), stepped{}, woken{}),
		pm.On(func(_ happened, in pm.Input) string { return sagaID(in.Source.Type, in.Source.Value) },
			func(_ saga, _ happened, in pm.Input) (pm.Step[saga], error) {
				return pm.Step[saga]{
					Events:   []aggregate.Event[saga]{stepped{in.Number}},
					Commands: []any{act{Number: in.Number}},
					Timeouts: []pm.Timeout{{Name: sagaTimeout, After: nap}},
				}, nil
			}).Starts(),
		pm.OnTimeout(sagaTimeout, func(s saga, _ pm.Input) (pm.Step[saga], error) {
			return pm.Step[saga]{
				Events:   []aggregate.Event[saga]{woken{s.Last}},
				Commands: []any{act{Number: s.Last, Woken: true}},
			}, nil
		}))
}

func (l *life) openSagas(client pm.Client) (err error) {
	l.sagas, err = pm.New(l.journal, client, sagaOf(l.member.group), pm.Config{
		Publisher: commandWire{l}, Marshaler: cqrs.JSONMarshaler{},
		GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "commands", nil },
		PollInterval:         sagaPolls, RetryAfter: sagaRetry,
		Now: func() time.Time { return time.Now().Add(l.process.skew) },
	})
	return err
}

// runSagas fires timeouts until the life ends.
func (l *life) runSagas() {
	ctx, stop := context.WithCancel(context.Background())
	l.endSagas = stop
	go func() { _ = l.sagas.Run(ctx) }()
}

// commandWire is a publisher whose messages travel as requests do.
type commandWire struct{ *life }

func (c commandWire) Publish(_ string, messages ...*message.Message) error {
	for _, msg := range messages {
		draw := c.wire.draw()
		if err := c.wire.travel(msg.Context(), draw.there); err != nil {
			return err
		}
		if draw.cut {
			return errCut
		}
		c.process.world.oracle.command(c.member, msg)
		if draw.lost {
			return errLost
		}
	}
	return nil
}

func (commandWire) Close() error { return nil }

// command is told of a command that has arrived.
func (o *oracle) command(m *member, msg *message.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.trace.seen["command"]++
	var a act
	if err := json.Unmarshal(msg.Payload, &a); err != nil {
		o.finding(Effect, "%s sends a command that cannot be read: %v", m.name, err)
		return
	}
	key := commandKey{m.group, msg.Metadata.Get("aggregate_id"), a}
	known, ok := o.commands[key]
	if ok && known != msg.UUID {
		o.finding(Effect, "%s sends the command %+v under the id %s, and before it was %s", m.name, key, msg.UUID, known)
	}
	o.commands[key] = msg.UUID
}

type commandKey struct {
	group, saga string
	act
}

// inspectSagas compares what sagas remember with what has happened, and their commands with what they remember.
func (w *world) inspectSagas(ctx context.Context, j *journal.Journal, heads map[stream]uint64) error {
	for _, g := range w.plan.groups {
		if !g.handlers.sagas {
			continue
		}
		for _, s := range sorted(heads) {
			id := aggregate.ID{Type: sagaType(g.name), Value: sagaID(s.topic, s.id)}
			got, err := remembered(ctx, j, id)
			if err != nil {
				return err
			}
			w.inspectSaga(g.name, id.Value, got, heads[s])
		}
	}
	return nil
}

// inspectSaga expects a step for each event that happened, in order, a waking after the last of them, and perhaps after others.
func (w *world) inspectSaga(group, id string, got []act, events uint64) {
	next := uint64(1)
	last := act{}
	for i, a := range got {
		if !a.Woken {
			for next < events && !hasHappened(next) {
				next++
			}
			if a.Number != next {
				w.oracle.find(Effect, "%s %s takes a step on #%d, not on #%d", group, id, a.Number, next)
				return
			}
			next++
		} else if i == 0 || last != (act{Number: a.Number}) {
			w.oracle.find(Effect, "%s %s wakes after #%d, having done %+v before", group, id, a.Number, last)
		}
		last = a
		if w.oracle.commands[commandKey{group, id, a}] == "" {
			w.oracle.find(Effect, "%s %s did not send the command %+v", group, id, a)
		}
	}
	for next <= events && !hasHappened(next) {
		next++
	}
	if next <= events {
		w.oracle.find(Effect, "%s %s took no step on #%d", group, id, next)
	}
	if len(got) > 0 && !last.Woken {
		w.oracle.find(Effect, "%s %s did not wake after #%d", group, id, last.Number)
	}
}

// remembered gives the events of a saga.
func remembered(ctx context.Context, j *journal.Journal, id aggregate.ID) (all []act, err error) {
	head, err := j.Head(ctx, id)
	if errors.Is(err, journal.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for r, err := range j.Events(ctx, id, 1, head.Version) {
		if err != nil {
			return nil, fmt.Errorf("read saga %s: %w", id, err)
		}
		var e struct{ Number, After uint64 }
		if err := json.Unmarshal(r.Payload, &e); err != nil {
			return nil, err
		}
		all = append(all, act{Number: max(e.Number, e.After), Woken: r.EventType == woken{}.EventType()})
	}
	return all, nil
}
