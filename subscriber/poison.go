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

// Metadata keys of messages in a poison queue, as Watermill's middleware sets them.
const (
	metadataReason     = envelope.ReasonPoisonedKey
	metadataTopic      = "topic_poisoned"
	metadataHandler    = "handler_poisoned"
	metadataSubscriber = "subscriber_poisoned"
)

// Metadata keys that say where the event is in the journal. A queue that is stored in a journal
// sets the usual keys to the place of the message in the queue.
const (
	metadataAggregateID    = "aggregate_id_poisoned"
	metadataSequenceNumber = "sequence_number_poisoned"
	metadataPayload        = "payload_poisoned"
)

// sendPoison publishes an event to the poison queue and continues with the next event.
func (d *deliverer) sendPoison(st *stream, f *failure, v *disposition) error {
	err := d.publishPoison(d.poison(f, v.reason))
	if errors.As(err, new(*journal.TooLargeError)) { // with the added metadata
		err = d.publishPoison(d.poisonWithoutPayload(f, v.reason))
	}
	if err != nil {
		return fmt.Errorf("publish event %d of %s to the poison queue: %w", v.number, st.ID, err)
	}
	d.stats.poisoned.Add(1)
	d.logger.Error("Event went to the poison queue", v.err, v.fields(st))
	defer d.sequencer.Resume(st)
	if of := st.Work.delivery; of.part+1 < of.parts { // the event has become several messages
		st.Work.delivery = delivery{number: v.number, part: of.part + 1, parts: of.parts}
		return nil
	}
	d.ack(st, v.number)
	// Store the position at once. Until then, the event is published again after a crash, and a
	// transaction that is in progress may commit.
	ctx, cancel := context.WithTimeout(d.messageCtx, writeTimeout)
	defer cancel()
	if err := d.committer.flushPosition(ctx, st); err != nil {
		d.committer.failedToWrite([]error{err}) // the next flush tries again
	}
	return nil
}

// publishPoison publishes a message. If the publisher does not return before the shard is given up,
// it returns errStopped, and the event is delivered again.
func (d *deliverer) publishPoison(msg *message.Message) error {
	published := make(chan error, 1)
	go func() {
		var err error
		defer func() { published <- err }()
		defer recovered(&err, "the publisher")
		err = d.config.Failures.publisher.Publish(d.config.Failures.topic, msg)
	}()
	select {
	case err := <-published:
		return err
	case <-d.abandoned:
		return errStopped
	}
}

// poison returns the message for the poison queue.
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

// poisonWithoutPayload returns a message without the event's payload and metadata, for a poison
// queue in a journal whose items would be too large. The message says where the event is.
func (d *deliverer) poisonWithoutPayload(f *failure, reason string) *message.Message {
	place := &failure{record: &journal.Record{
		Aggregate: f.record.Aggregate, Number: f.record.Number, EventID: f.record.EventID, EventType: f.record.EventType, OccurredAt: f.record.OccurredAt,
	}}
	msg := d.poison(place, reason)
	msg.Metadata.Set(metadataPayload, "left out, as the message would be too large")
	return msg
}
