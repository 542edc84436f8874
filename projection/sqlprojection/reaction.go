package sqlprojection

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/history"
	"github.com/millrace-dev/millrace/internal/reaction"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

// Reaction handles one type of event in a handler. [On] makes one.
type Reaction struct {
	eventType string
	decode    func(aggregate.Codec, *journal.Record) (func(context.Context, *sql.Tx) error, error)
}

// EventType returns the type of the events to which the reaction reacts.
func (r Reaction) EventType() string { return r.eventType }

// On returns a [Reaction] to events of the type E, which is identified by its EventType. E is the
// event as the aggregate defines it, or a type of your own with the fields that the reaction needs.
// The zero value of E must return its EventType, so E is not a pointer.
//
// The record holds the aggregate, the sequence number, the time and the metadata. If react returns
// an error, the transaction is rolled back, and the message is nacked and delivered again; only its
// aggregate waits.
func On[E interface{ EventType() string }](react func(ctx context.Context, tx *sql.Tx, event E, record *journal.Record) error) Reaction {
	if react == nil {
		return Reaction{} // React refuses it
	}
	return Reaction{
		eventType: reaction.EventType[E](),
		decode: func(codec aggregate.Codec, r *journal.Record) (func(context.Context, *sql.Tx) error, error) {
			event, err := reaction.Decode[E](codec, r)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context, tx *sql.Tx) error { return react(ctx, tx, event, r) }, nil
		},
	}
}

// React returns a handler of typed reactions. It works as [Store.Handle], with upcast
// ([Config].Definitions) and decoded events. Events without a reaction are acked without a
// transaction, whether or not a definition knows them.
//
// Errors: [*ConfigError]. The errors of the handler are those of Handle and of the codec.
func (s *Store) React(reactions ...Reaction) (message.NoPublishHandlerFunc, error) {
	p, err := s.Project(nil, reactions...)
	if err != nil {
		return nil, err
	}
	return p.Handle, nil
}

// Projection applies events to the database with reactions. [Store.Project] makes one. It is safe
// for concurrent use.
type Projection struct {
	store     *Store
	history   history.History
	reactions map[string]Reaction
	stats     counters
}

// Project returns a projection, which counts its own events. Definitions are for a store whose
// [Config].Definitions are left out. Errors: [*ConfigError].
func (s *Store) Project(definitions []aggregate.AnyDefinition, reactions ...Reaction) (*Projection, error) {
	p := &Projection{store: s, history: s.history, reactions: map[string]Reaction{}}
	if len(s.config.Definitions) == 0 {
		var err error
		if p.history, err = history.New(s.config.Codec, definitions); err != nil {
			return nil, &ConfigError{err.Error()}
		}
	}
	for i, r := range reactions {
		if r.eventType == "" {
			return nil, &ConfigError{fmt.Sprintf("reaction %d has no function or no event type: pass On a function of an event struct whose zero value returns its EventType", i+1)}
		}
		if _, taken := p.reactions[r.eventType]; taken {
			return nil, &ConfigError{fmt.Sprintf("two reactions to %q: make one of them", r.eventType)}
		}
		p.reactions[r.eventType] = r
	}
	return p, nil
}

// EventTypes returns the types of the events that have a reaction, in alphabetical order.
func (p *Projection) EventTypes() []string { return slices.Sorted(maps.Keys(p.reactions)) }

// Stats returns the counts of the projection, as [Store.Stats] does for all handlers of the store.
func (p *Projection) Stats() projection.Stats { return p.stats.read() }

// Handle handles a message, as the handler of [Store.React] does.
func (p *Projection) Handle(msg *message.Message) error { return reasoned(p.handle)(msg) }

func (p *Projection) handle(msg *message.Message) error {
	record, ok := subscriber.RecordFromContext(msg.Context())
	if !ok {
		return reaction.NoPosition(msg)
	}
	events, err := p.history.Today(record)
	if err != nil {
		return err
	}
	var applies []func(context.Context, *sql.Tx) error
	for _, event := range events {
		r, ok := p.reactions[event.EventType]
		if !ok {
			continue
		}
		apply, err := r.decode(p.history.Codec(event.Aggregate.Type), event)
		if err != nil {
			return err
		}
		applies = append(applies, apply)
	}
	if len(applies) == 0 {
		p.stats.ignored.Add(1)
		p.store.stats.ignored.Add(1)
		return nil
	}
	return p.store.once(msg, &p.stats, func(ctx context.Context, tx *sql.Tx) error {
		for _, apply := range applies {
			if err := apply(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}
