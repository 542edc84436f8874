package publisher

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/carried"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// maxTopicBytes is the maximum length of a topic. It leaves room for the hyphen and one byte of the
// id's value.
const maxTopicBytes = aggregate.MaxIDBytes - len("-x")

func checkTopic(topic string) error {
	if len(topic) > maxTopicBytes {
		return &TopicError{Topic: topic, Reason: fmt.Sprintf("it has %d bytes: use at most %d, and less if aggregate ids are longer than one byte", len(topic), maxTopicBytes)}
	}
	err := aggregate.ID{Type: topic, Value: "x"}.Validate()
	var invalid *aggregate.InvalidIDError
	if errors.As(err, &invalid) {
		return &TopicError{Topic: topic, Reason: invalid.Reason}
	}
	return err
}

// prepare returns a batch for each aggregate, in the order in which the aggregates first appear. It
// refuses invalid messages before anything is written.
func (p *Publisher) prepare(topic string, messages []*message.Message) ([]*batch, error) {
	if err := checkTopic(topic); err != nil {
		return nil, err
	}
	var batches []*batch
	byID := map[string]*batch{}
	for i, msg := range messages {
		if msg == nil {
			return nil, &MessageError{Topic: topic, Index: i, Err: errors.New("it is nil: make messages with message.NewMessage")}
		}
		refuse := func(err error) ([]*batch, error) {
			return nil, &MessageError{Topic: topic, Index: i, UUID: msg.UUID, Err: err}
		}
		value, err := p.config.AggregateID(topic, msg)
		if err != nil {
			return refuse(fmt.Errorf("find its aggregate id: %w", err))
		}
		own := value == "" || slices.Contains(p.config.Queues, topic)
		if value == "" {
			value = p.streamOf(msg)
		}
		b, begun := byID[value]
		if !begun {
			b = &batch{id: aggregate.ID{Type: topic, Value: value}, done: make(chan struct{})}
		}
		if err := b.expect(msg); err != nil {
			return refuse(err)
		}
		marshaled, err := p.config.Marshaler.Marshal(topic, msg)
		if err != nil {
			return refuse(fmt.Errorf("marshal it: %w", err))
		}
		event := storage.Event{
			ID: marshaled.ID, Type: marshaled.Type, Payload: marshaled.Payload, Metadata: marshaled.Metadata,
		}
		event.Metadata, event.OwnStream = ledTo(msg, event), own
		size, err := p.journal.EventSize(b.id, event)
		if err != nil {
			return refuse(err)
		}
		b.add(i, event, size)
		if !begun {
			byID[value] = b
			batches = append(batches, b)
		}
	}
	for _, b := range batches {
		if err := b.checkExpected(); err != nil {
			first := b.indexes[0]
			return nil, &MessageError{Topic: topic, Index: first, UUID: messages[first].UUID, Err: err}
		}
	}
	return batches, nil
}

// ledTo returns the event's metadata with the correlation and causation ids of the message's
// context. A handler of our subscriber that sends the message has set them. Keys that the event has
// are kept. A forwarded message is not its own cause, so it gets none.
func ledTo(msg *message.Message, event storage.Event) aggregate.Metadata {
	ctx := msg.Context()
	if ctx.Value(carried.Key{}) == nil {
		return event.Metadata
	}
	metadata := aggregate.MetadataFromContext(ctx)
	if metadata[aggregate.CausationIDKey] == event.ID {
		return event.Metadata
	}
	maps.Copy(metadata, event.Metadata)
	return metadata
}

// expect applies the version that a message expects to the batch. Call it before the message is
// added.
func (b *batch) expect(msg *message.Message) error {
	version, given, err := expectation(msg)
	switch {
	case err != nil || !given:
		return err
	case len(b.events) == 0:
		b.expected = &version
	case b.expected == nil:
		return fmt.Errorf("it expects version %d of %s, but the first message of this Publish to the aggregate expects none: "+
			"call SetExpectedVersion for the first one", version, printable.Quote(b.id.String()))
	case version != *b.expected+uint64(len(b.events)):
		return fmt.Errorf("it expects version %d of %s, which has version %d after the messages before it: publish it alone, or do not call SetExpectedVersion for it",
			version, printable.Quote(b.id.String()), *b.expected+uint64(len(b.events)))
	}
	return nil
}

// checkExpected refuses a batch that expects a version and needs several transactions, since
// another writer could write between them.
func (b *batch) checkExpected() error {
	if b.expected == nil || len(b.runs) == 1 {
		return nil
	}
	if n := len(b.events); n > storage.MaxEvents {
		return &journal.TooLargeError{ID: b.id, What: "the commit", Size: n, Limit: storage.MaxEvents, Unit: "events"}
	}
	size := 0
	for _, r := range b.runs {
		size += r.bytes
	}
	return &journal.TooLargeError{ID: b.id, What: "the commit of messages that expect a version", Size: size, Limit: storage.MaxEventsBytes, Unit: "bytes"}
}
