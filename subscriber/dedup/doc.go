// Package dedup recognises messages that came before, for handlers behind a transport that delivers some of them twice.
//
// Handlers of a [github.com/millrace-dev/millrace/subscriber] need none of it. The subscriber knows the position of its group in
// each aggregate: an event at or below it is never delivered again, one that was nacked is, and there is no window after
// which either is forgotten. Only after a crash, what was acked in its last moments comes again, since positions are stored a little
// after the ack; a handler that cannot bear that commits the position with its effects, as package projection does.
// A Deduplicator before such a handler makes it worse: it drops what was nacked. This package is for what lies behind another transport:
//
//   - [Positions] is for messages of the subscriber that a handler has forwarded, to Kafka for example, and that are consumed
//     there. It does what the subscriber does: it keeps the number of the last event that was handled, per aggregate and group,
//     and moves it after the handler has succeeded.
//   - [Keys] is for messages that are no events of a journal. It is an ExpiringKeyRepository for the Deduplicator of
//     Watermill, with the faults that a memory of keys has.
//
// Both keep their items in one table, which [CreateTable] makes.
//
// # Keys
//
//	keys, err := dedup.NewKeys(client, dedup.KeysConfig{Group: "mails", Window: 24 * time.Hour})
//	deduplicator := &middleware.Deduplicator{Repository: keys, KeyFactory: dedup.UUID, Timeout: 10 * time.Second}
//	router.AddMiddleware(deduplicator.Middleware, poison, middleware.Retry{MaxRetries: 5, ...}.Middleware)
//
// What to know of the Deduplicator (Watermill 1.5):
//
//   - It marks the key before the handler runs, and leaves the mark when the handler fails. The message is nacked, comes again, and is
//     acked as a duplicate: it is lost. So put it outside of a middleware that retries and of one that takes what keeps
//     failing, as above; then only a crash, or an end of the context, between the mark and the end of the handler loses a message.
//   - Messages that a handler returns are published after all middlewares. If that fails, the message comes again and is
//     acked as a duplicate, and what the handler returned is lost. Such a handler should publish by itself.
//   - Without a KeyFactory it takes an Adler-32 sum of the payload, and nothing else: different messages with equal payloads, and some with
//     different ones, are dropped as duplicates. [UUID] and [Event] are better keys.
//   - Without a Timeout it gives the repository five milliseconds (its documentation says a minute), in which not every
//     write to DynamoDB ends. What is cut off may have been written. Keys remembers that in its process, see
//     [Keys.IsDuplicate]; a message that comes again in another process is lost. So set a Timeout.
//   - A duplicate that comes after [KeysConfig.Window] is handled again.
//
// The table grows with the messages of a window.
//
// # Positions
//
//	positions, err := dedup.NewPositions(client, dedup.PositionsConfig{Group: "mails"})
//	router.AddMiddleware(positions.Middleware, poison, middleware.Retry{...}.Middleware)
//
// The metadata aggregate_type, aggregate_id and sequence_number, which the subscriber sets, tell which event a message is. So a
// forwarder must keep them, which one does that returns the message, or a copy, from a handler of the Router:
//
//	router.AddHandler("forward", "order", sub, "orders", kafka, func(msg *message.Message) ([]*message.Message, error) {
//		return message.Messages{msg.Copy()}, nil
//	})
//
// (The publisher of this module makes new events with numbers of their own of what is published, so that a duplicate of a message is not recognised
// by its number in another journal.)
//
// An event at or below the position is acked without its handler. The one after it is handled, and then the position moves. If the
// handler fails, the position stays and the message comes again. After a crash in between, the handler sees the event once
// more, so it is handled at least once: effects that must be exactly once belong into a transaction with the position, see package
// projection. The table grows with the aggregates, one item of some 100 bytes for each in each group, and nothing expires.
//
// An event further on means that those in between are missing: on their way, overtaken, or left out on purpose. A number
// cannot tell which. [RefuseGaps], the default, takes them to be on their way: the message fails with a [*GapError] and comes again, until those before it
// have been handled. That puts in order what an unordered transport (a queue) delivers, loses nothing, and needs every event to be forwarded, from the
// first on. On an ordered transport that repeats a failed message in place (a partition of Kafka) a missing event stops what is
// behind it, loudly; [Positions.Set] goes on without. [PassGaps] takes them to be left out: the event is handled, and one before it that comes later
// is dropped. It is for forwarders that leave events out, of types (subscriber.Config.EventTypes) or before a time, and is safe only where the transport keeps
// the order of an aggregate, which Kafka does when the aggregate's id is the partition key.
//
// Messages of one aggregate are handled one after the other within a process. Two processes may handle the same message at once, when
// a transport gives it to both, as after a rebalance; the position still never moves back.
//
// # Cost
//
// One write unit for each call of [Keys.IsDuplicate], whatever it finds. With [Positions.Middleware] one read unit for each message, and one
// write unit for each that was handled. Each is one round trip.
package dedup
