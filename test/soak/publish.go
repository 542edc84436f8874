package soak

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

// publish appends messages to some aggregates.
func (w *writer) publish() {
	type part struct {
		id       string
		command  uint64
		indexes  []int // indexes of its messages
		expected bool
		told     func(error)
	}
	var parts []*part
	var messages []*message.Message
	for range 1 + w.random.IntN(3) {
		id := w.thing(w.random)
		if slices.ContainsFunc(parts, func(p *part) bool { return p.id == id }) {
			continue
		}
		p := &part{id: id, command: w.truth.command(id), told: w.mortal("publish", id)}
		n := max(1, w.size())
		if n > storage.MaxEvents && w.random.IntN(2) == 0 {
			n += 100 // two transactions
		}
		a, known := w.held[id]
		p.expected = known && n <= storage.MaxEvents && !w.heavy && w.random.IntN(4) == 0
		for i, event := range w.events(w.random, p.command, n) {
			payload, err := json.Marshal(event)
			if err != nil {
				w.truth.report(Wrong, "an event cannot be encoded: %v", err)
				return
			}
			msg := message.NewMessage(fmt.Sprint(p.command, "-", i), payload)
			msg.Metadata.Set(publisher.NameKey, event.EventType())
			msg.Metadata.Set(publisher.AggregateIDKey, id)
			if i == 0 && p.expected {
				publisher.SetExpectedVersion(msg, a.Version)
			}
			p.indexes = append(p.indexes, len(messages))
			messages = append(messages, msg)
		}
		parts = append(parts, p)
	}
	err := w.publisher.Publish(things.Type(), messages...)
	failures := map[string]*publisher.AppendError{}
	var failed *publisher.PublishError
	if errors.As(err, &failed) {
		for _, f := range failed.Failed {
			failures[f.Aggregate.Value] = f
		}
	} else if err != nil {
		w.truth.report(Wrong, "publish: an error that is not documented: %v", err)
	}
	for _, p := range parts {
		// Large messages may take several transactions, as more than 99 messages do.
		o := outcome{sure: len(p.indexes), split: len(p.indexes) > storage.MaxEvents || w.heavy}
		if f := failures[p.id]; f != nil {
			o.sure, o.maybe = len(f.Written), len(f.Unknown)
			w.publishError(f.Err, p.expected)
			p.told(f.Err)
		} else {
			p.told(nil)
		}
		w.truth.record(p.command, o)
	}
}

func (w *writer) publishError(err error, expected bool) {
	switch {
	case expected && errors.Is(err, journal.ErrConflict):
		w.truth.see("conflict of a publish")
	case errors.Is(err, journal.ErrOutcomeUnknown):
		w.truth.see("outcome of a publish unknown")
	case errors.As(err, new(*journal.DeletedError)): // see mortal
	case readFailed(err, "PutItem"), errors.Is(err, journal.ErrThrottled), errors.Is(err, journal.ErrContended):
		w.truth.see("publish failed")
	default:
		w.truth.report(Wrong, "publish: an error that is not documented: %v", err)
	}
}
