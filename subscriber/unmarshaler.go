package subscriber

import (
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/journal"
)

// Unmarshaler converts records to messages. The subscriber sets the context of each message.
type Unmarshaler interface {
	Unmarshal(r *journal.Record) (*message.Message, error)
}

// DefaultUnmarshaler makes messages with the event id as UUID, the payload of the event, and the
// metadata that the package overview lists. An [Unmarshaler] of your own may call it and change the
// message that it returns.
type DefaultUnmarshaler struct{}

// Unmarshal converts a record to a message. Its error is always nil.
func (DefaultUnmarshaler) Unmarshal(r *journal.Record) (*message.Message, error) {
	return envelope.Message(r), nil
}

// PlainUnmarshaler makes messages as they were published: with the event id as UUID, the payload,
// the published metadata, and the event type in [NameKey]. They lack the keys that say where
// the event is, such as [AggregateIDKey]. [RecordFromContext] returns that in any case. Use it
// for handlers that compare or count the metadata, or that send messages to programs which must not
// see the place.
type PlainUnmarshaler struct{}

// Unmarshal converts a record to a message. Its error is always nil.
func (PlainUnmarshaler) Unmarshal(r *journal.Record) (*message.Message, error) {
	return envelope.Plain(r), nil
}

// markPart adds the metadata of a message that is one of several.
func markPart(msg *message.Message, part, of int) {
	if msg.Metadata == nil {
		msg.Metadata = message.Metadata{}
	}
	msg.Metadata[PartKey] = fmt.Sprintf("%d/%d", part, of)
}

func (d *deliverer) unmarshal(r *journal.Record) (*message.Message, error) {
	msg, err := d.tryUnmarshal(r)
	if err == nil && msg == nil {
		err = errors.New("the Unmarshaler returned no message: let it return one, or an error")
	}
	if err != nil {
		return nil, &failure{record: r, err: fmt.Errorf("unmarshal event %d of %s: %w", r.Number, r.Aggregate, err)}
	}
	return msg, nil
}

func (d *deliverer) tryUnmarshal(r *journal.Record) (msg *message.Message, err error) {
	defer recovered(&err, "the Unmarshaler")
	return d.config.Unmarshaler.Unmarshal(r)
}
