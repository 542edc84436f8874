// Package dedup recognises duplicate Watermill messages: messages that a handler has already
// handled. It is for handlers whose transport delivers some messages more than once.
//
//	err := dedup.CreateTable(ctx, client, dedup.TableConfig{})
//	positions, err := dedup.NewPositions(client, dedup.PositionsConfig{Group: "mails"})
//	router.AddConsumerHandler("mails", "orders", transport, sendMail).
//		AddMiddleware(positions.Middleware)
//
// There are two stores. Both use the table that [CreateTable] creates:
//
//   - [Positions] is for messages of the subscriber of this module. For each aggregate and group it
//     stores the number of the last event that was handled. It also works behind another transport,
//     such as Kafka, to which a handler has forwarded the messages.
//   - [Keys] is for other messages. It stores a key for each message, for a limited time. It is an
//     ExpiringKeyRepository for Watermill's Deduplicator.
//
// # When a handler of the subscriber needs it
//
// Most handlers of a [github.com/millrace-dev/millrace/subscriber] do not need this package. The
// subscriber knows the position of its group in each aggregate, and never delivers an event at or
// below that position. But it stores positions a little after the ack, at
// subscriber.Timing.CommitInterval. After a crash it delivers again all events that were acked
// since. A handler that sends mails then sends these mails twice.
//
// Such a handler uses [Positions], which stores each position before the ack. After a crash only
// the events that were being handled are delivered again.
//
// A handler whose effects are in a database can commit the position together with the effects, as
// package projection does. Then each effect happens exactly once.
//
// # Positions
//
// The metadata aggregate_type, aggregate_id and sequence_number identify the event of a message.
// The subscriber sets them, and a forwarder must keep them. A handler of the Router that returns
// the message or a copy of it keeps them:
//
//	router.AddHandler("forward", "order", sub, "orders", kafka,
//		func(msg *message.Message) ([]*message.Message, error) {
//			return message.Messages{msg.Copy()}, nil
//		})
//
// The publisher of this module does not keep them: it stores messages as new events with new
// numbers. So [Positions] cannot recognise duplicates that were published to another journal.
//
// An event at or below the position is acked without a call of the handler. The next event is
// handled, and then the position moves. If the handler fails, the position stays, and the message
// is delivered again. A crash after the handler and before the move also leads to a second
// delivery. So each event is handled at least once. The position never moves back.
//
// An event beyond the next one means that events in between are missing. They may come later, or a
// forwarder may have left them out on purpose. [PositionsConfig].Gaps says which:
//
//   - [RefuseGaps], the default, expects that the missing events come later. The message fails with
//     a [*GapError], and is delivered again until the events before it have been handled. This
//     restores the order on an unordered transport, such as a queue, and loses nothing. Every event
//     must be forwarded, from the first one on. A partition of Kafka repeats a failed message in
//     place, so there a missing event stops all messages behind it; [Positions.Set] skips the
//     missing event.
//   - [PassGaps] expects that the missing events were left out. The event is handled. An earlier
//     event that comes later is dropped. Use it for forwarders that leave out events by type
//     (subscriber.Config.EventTypes) or by time. It is safe only if the transport keeps the order
//     of the events of an aggregate. Kafka does so if the partition key is the aggregate's id.
//
// Messages of one aggregate are handled one after the other within a process. Two processes may
// handle the same message at the same time, if the transport delivers it to both, as after a
// rebalance.
//
// # Keys
//
//	keys, err := dedup.NewKeys(client, dedup.KeysConfig{Group: "mails", Window: 24 * time.Hour})
//	deduplicator := &middleware.Deduplicator{
//		Repository: keys, KeyFactory: dedup.UUID, Timeout: 10 * time.Second,
//	}
//	router.AddMiddleware(deduplicator.Middleware, poison, retry.Middleware)
//
// The Deduplicator of Watermill 1.5 has limits:
//
//   - It marks the key before the handler runs, and keeps the mark when the handler fails. The
//     message is nacked, delivered again, and acked as a duplicate: it is lost. So put the
//     Deduplicator outside of a poison queue and of a middleware that retries, as above. Then a
//     message is lost only if the process crashes, or the context ends, after the mark and before
//     the end of the handler.
//   - The Router publishes the messages that a handler returns after all middlewares. If that
//     fails, the message is delivered again and acked as a duplicate, and the returned messages are
//     lost. Such a handler should publish by itself.
//   - Without a KeyFactory the key is an Adler-32 checksum of the payload. It drops different
//     messages with equal payloads, and some with different payloads. [UUID] and [Event] are better
//     keys.
//   - Without a Timeout the repository has five milliseconds, although the documentation says a
//     minute. This is too short for some writes to DynamoDB, so set a Timeout. A write that is
//     interrupted may have happened. Keys remembers such a write in its process, see
//     [Keys.IsDuplicate]. A message that is then delivered to another process is lost.
//   - A duplicate that comes after [KeysConfig].Window is handled again.
//
// # Size and cost
//
// [Positions] keeps one item of about 100 bytes for each aggregate and group, and they do not
// expire. [Positions.Middleware] costs one read unit for each message, and one write unit for each
// message that was handled. [Keys] keeps one item of about 150 bytes for each key of a window.
// [Keys.IsDuplicate] costs one write unit, whatever its result. Each read or write is one round
// trip.
package dedup
