// Package forward publishes events to other systems, as public messages over any Watermill
// publisher: Kafka, NATS, SNS and SQS, SQL and others.
//
//	out, err := forward.New(forward.Config{Publisher: broker},
//		forward.On("orders", func(
//			ctx context.Context, e order.Placed, r *journal.Record,
//		) ([]OrderPlaced, error) {
//			return []OrderPlaced{{ID: r.Aggregate.Value, Total: e.Total}}, nil
//		}),
//	)
//	sub, err := subscriber.NewSubscriber(subscriber.Config{
//		Journal: j, ConsumerGroup: "orders-out", NoReplay: true,
//	}, logger)
//	router.AddConsumerHandler("orders-out", "order", sub, out.Handle)
//
// In an App, millrace.App.Forward does the same.
//
// # Messages
//
// A function turns an event into the messages that other systems receive. So the events can change
// while the messages stay as they are. A message has this metadata:
//
//   - [NameKey]: the name of the message, by Config.Marshaler. Watermill's cqrs component reads it.
//   - [SchemaVersionKey]: the version of its schema, see [Mapping.WithVersion].
//   - [KeyKey]: the key for the broker, by default the id of the aggregate.
//   - [OccurredAtKey]: the time of the event, RFC 3339 with milliseconds, UTC.
//   - [SequenceNumberKey]: the number of the event within its aggregate, from 1.
//   - correlation_id, and traceparent and tracestate if the event has them.
//   - causation_id: the id of the event.
//
// These are at most nine. SQS accepts ten attributes, and the Pub/Sub needs one for the UUID. Other
// metadata of the event is not published, because it can be internal. [Config].Prepare can add it.
//
// # Order and duplicates
//
// The messages of an aggregate are published in the order of its events: those of an event are
// published after the broker has accepted those of the event before. Each message is published at
// least once. It is published again if the process ends before the position of the group is stored,
// or if the broker has accepted a message and its reply was lost.
//
// The UUID of a message is always the same. It is made of the aggregate, the number and the id of
// the event, and of the topic, the name and the place of the message. So a broker can drop
// duplicates (NATS by Nats-Msg-Id, SQS and SNS by the deduplication id), and a receiver can
// (package subscriber/dedup, or the UUID as a unique key). Apart from duplicates, the order is kept
// for each key.
//
// # Failures
//
// If the function or the publisher returns an error, the message is nacked and delivered again.
// Only its aggregate waits, and nothing is dropped. See subscriber.Config.Failures. Do not defer
// events (subscriber.Defer), because later messages would overtake them.
//
// The caller closes the publisher, after the handlers have ended.
//
// # Replays
//
// A reset of the group would publish old events again. So set subscriber.Config.NoReplay: then
// package groups refuses to reset or remove the group, unless the caller confirms the replay. A new
// group begins with the first event, unless subscriber.Config.Start says otherwise.
package forward
