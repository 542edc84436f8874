// Package dedup recognises messages that came before, for handlers behind a transport that delivers
// some messages twice.
//
// Most handlers of a [github.com/millrace-dev/millrace/subscriber] do not need it. The subscriber
// knows the position of its group in each aggregate. It never delivers an event at or below that
// position, always delivers one that was nacked again, and forgets neither after some time. But it
// stores positions a little after the ack (subscriber.Config.CommitInterval). After a crash all
// events come again that were acked since: many mails of a handler that sends mails go out twice.
// Such a handler uses [Positions], which stores each position before the ack: only an event whose
// handler was running comes again. A handler whose effects are in a database commits the position
// with them, as package projection does; then nothing happens twice.
//
// This package is for such handlers, and for those behind another transport:
//
//   - [Positions] is for messages of the subscriber, also where a handler has forwarded them, to
//     Kafka for example, and they are consumed there. It keeps the number of the last event that
//     was handled, for each aggregate and group, and moves it after the handler has succeeded.
//   - [Keys] is for messages that are not events of a journal. It is an ExpiringKeyRepository for
//     Watermill's Deduplicator, with the limits that a store of keys has.
//
// Both keep their items in one table, which [CreateTable] creates.
//
// # Keys
//
//	keys, err := dedup.NewKeys(client, dedup.KeysConfig{Group: "mails", Window: 24 * time.Hour})
//	deduplicator := &middleware.Deduplicator{Repository: keys, KeyFactory: dedup.UUID, Timeout: 10 * time.Second}
//	router.AddMiddleware(deduplicator.Middleware, poison, middleware.Retry{MaxRetries: 5, ...}.Middleware)
//
// Limits of the Deduplicator (Watermill 1.5):
//
//   - It marks the key before the handler runs, and leaves the mark when the handler fails. The
//     message is nacked, comes again, and is acked as a duplicate: it is lost. So put the
//     Deduplicator outside of a middleware that retries and of a poison queue, as above. Then only
//     a crash, or an end of the context, between the mark and the end of the handler loses a
//     message.
//   - Messages that a handler returns are published after all middlewares. If that fails, the
//     message comes again and is acked as a duplicate, and the returned messages are lost. Such a
//     handler should publish by itself.
//   - Without a KeyFactory the key is an Adler-32 sum of the payload. Different messages with equal
//     payloads, and some with different payloads, are dropped as duplicates. [UUID] and [Event] are
//     better keys.
//   - Without a Timeout the repository has five milliseconds (the documentation says a minute),
//     which is too short for some writes to DynamoDB. A write that is cut off may have happened.
//     Keys remembers that in its process, see [Keys.IsDuplicate]; a message that comes again in
//     another process is lost. So set a Timeout.
//   - A duplicate that comes after [KeysConfig.Window] is handled again.
//
// The table grows with the messages of a window.
//
// # Positions
//
//	positions, err := dedup.NewPositions(client, dedup.PositionsConfig{Group: "mails"})
//	router.AddMiddleware(positions.Middleware, poison, middleware.Retry{...}.Middleware)
//
// The metadata aggregate_type, aggregate_id and sequence_number, which the subscriber sets,
// identify the event. So a forwarder must keep them. A handler of the Router that returns the
// message, or a copy, does so:
//
//	router.AddHandler("forward", "order", sub, "orders", kafka, func(msg *message.Message) ([]*message.Message, error) {
//		return message.Messages{msg.Copy()}, nil
//	})
//
// (The publisher of this module makes new events, with numbers of their own, of the messages that
// it publishes. So a duplicate cannot be recognised by its number in another journal.)
//
// An event at or below the position is acked without its handler. The next event is handled, and
// then the position moves. If the handler fails, the position stays and the message comes again.
// After a crash in between, the handler sees the event once more, so it is handled at least once.
// Effects that must happen exactly once belong into a transaction with the position, see package
// projection. The table grows with the aggregates, by one item of some 100 bytes for each aggregate
// and group. Nothing expires.
//
// An event with a later number than the next one means that events in between are missing. They are
// on their way, were overtaken, or were left out on purpose. A number does not say which:
//
//   - [RefuseGaps], the default, assumes that they are on their way. The message fails with a
//     [*GapError] and comes again until the events before it have been handled. This restores the
//     order on an unordered transport (a queue) and loses nothing, but every event must be
//     forwarded, from the first one on. On an ordered transport that repeats a failed message in
//     place (a partition of Kafka), a missing event stops all messages behind it; [Positions.Set]
//     continues without the missing one.
//   - [PassGaps] assumes that they were left out. The event is handled, and an earlier event that
//     comes later is dropped. It is for forwarders that leave out events by type
//     (subscriber.Config.EventTypes) or by time. It is safe only if the transport keeps the order
//     of an aggregate, as Kafka does if the aggregate's id is the partition key.
//
// Messages of one aggregate are handled one after the other within a process. Two processes may
// handle the same message at once, if a transport delivers it to both, as after a rebalance. The
// position never moves back.
//
// # Cost
//
// Each call of [Keys.IsDuplicate] costs one write unit, whatever its result. [Positions.Middleware]
// costs one read unit for each message, and one write unit for each message that was handled. Each
// is one round trip.
package dedup
