package subscriber

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/journal"
)

// Metadata of messages in a poison queue, as Watermill's middleware has it.
const (
	metadataReason     = "reason_poisoned"
	metadataTopic      = "topic_poisoned"
	metadataHandler    = "handler_poisoned"
	metadataSubscriber = "subscriber_poisoned"
)

// And where the event is in the journal: a queue that is in a journal as well gives a message a
// place of its own, under the usual names.
const (
	metadataAggregateID    = "aggregate_id_poisoned"
	metadataSequenceNumber = "sequence_number_poisoned"
	metadataPayload        = "payload_poisoned"
)

// sendPoison hands an event to the poison queue and goes on behind it.
func (d *deliverer) sendPoison(st *stream, f *failure, v *disposition) error {
	err := d.publishPoison(d.poison(f, v.reason))
	if errors.As(err, new(*journal.TooLargeError)) { // with all that comes on top of the event
		err = d.publishPoison(d.poisonWithoutPayload(f, v.reason))
	}
	if err != nil {
		return fmt.Errorf("publish event %d of %s to the poison queue: %w", v.number, st.id, err)
	}
	d.stats.poisoned.Add(1)
	d.logger.Error("Event went to the poison queue", v.err, v.fields(st))
	defer d.sequencer.resume(st)
	if of := st.delivery; of.part+1 < of.parts { // the event has become several
		st.delivery = delivery{number: v.number, part: of.part + 1, parts: of.parts}
		return nil
	}
	d.ack(st, v.number)
	// At once: until then a crash has the event published again, and a transaction that is still on
	// its way may take effect.
	ctx, cancel := context.WithTimeout(d.messageCtx, writeTimeout)
	defer cancel()
	if err := d.committer.flushPosition(ctx, st); err != nil {
		d.committer.failedToWrite([]error{err}) // the next flush tries again
	}
	return nil
}

// publishPoison does not wait for a publisher that does not return once the shard is given up. The
// event comes again then.
func (d *deliverer) publishPoison(msg *message.Message) error {
	published := make(chan error, 1)
	go func() { published <- d.config.Failures.publisher.Publish(d.config.Failures.topic, msg) }()
	select {
	case err := <-published:
		return err
	case <-d.abandoned:
		return errStopped
	}
}

// poison makes the message for the poison queue.
func (d *deliverer) poison(f *failure, reason string) *message.Message {
	var msg *message.Message
	if f.msg != nil {
		msg = f.msg.Copy()
	} else {
		msg = envelope.Message(f.record)
		if f.parts > 1 {
			markPart(msg, f.part+1, f.parts)
		}
	}
	if msg.UUID == "" {
		msg.UUID = watermill.NewUUID()
	}
	msg.SetContext(d.messageCtx)
	msg.Metadata.Set(metadataReason, reason)
	msg.Metadata.Set(metadataTopic, d.topic)
	msg.Metadata.Set(metadataHandler, "")
	msg.Metadata.Set(metadataSubscriber, "subscriber.Subscriber")
	msg.Metadata.Set(metadataAggregateID, f.record.Aggregate.Value)
	msg.Metadata.Set(metadataSequenceNumber, strconv.FormatUint(f.record.Number, 10))
	return msg
}

// poisonWithoutPayload makes the message for a poison queue in a journal, whose item would be too
// large with the event's payload and metadata. The event stays where the message says.
func (d *deliverer) poisonWithoutPayload(f *failure, reason string) *message.Message {
	place := &failure{record: &journal.Record{
		Aggregate: f.record.Aggregate, Number: f.record.Number, EventID: f.record.EventID, EventType: f.record.EventType, OccurredAt: f.record.OccurredAt,
	}}
	msg := d.poison(place, reason)
	msg.Metadata.Set(metadataPayload, "left out, as the message would be too large")
	return msg
}
