// Package publisher is Watermill's message.Publisher over the journal: what is published is
// appended to aggregates, numbered without gap or repeat, and durable when Publish returns nil.
//
//	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, logger)
//	...
//	msg := message.NewMessage(watermill.NewUUID(), payload)
//	msg.Metadata.Set(publisher.NameKey, "order.placed.v1")
//	msg.Metadata.Set(publisher.AggregateIDKey, "1234")
//	err = p.Publish("order", msg)
//
// # Where a message goes
//
// The topic is the aggregate type, and the metadata [AggregateIDKey] is the id (or
// [Config.AggregateID] finds it). A message without an id goes to the stream of this Publisher,
// [Config.StreamID]: an aggregate like any other, which no other process writes to unless it is
// told to, so that messages without an id keep their order and meet no contention. Such streams
// grow: groups.Groups.Trim removes what all consumer groups have handled. It recognizes the events
// by the metadata own_stream, which the Publisher stores with them, and messages do not have.
//
// Do not publish to aggregates that belong to a repository unless its definition knows the event
// type. What is published becomes an event of the aggregate like those that its decisions make:
// every load replays it, and fails on a type that the definition does not have (or on a payload
// that is not that of the type). Publish notes about such an aggregate to a topic of their own.
//
// The message's UUID, payload and metadata are stored as they are; [NameKey] becomes the event
// type. UUIDs carry no meaning: two messages with one UUID are two events.
//
// # Order and transactions
//
// The messages of one Publish are appended in their order, per aggregate. Those of one aggregate
// that fit into one transaction of DynamoDB, 99 events and 4 MB, are committed together: all of
// them or none. More take several transactions, in order, and the first that fails is the last that
// is tried. Different aggregates are appended side by side, [Config.Concurrency] at a time, and
// there is no order among them.
//
// # Group commit
//
// An aggregate is written by one commit at a time, because concurrent commits would conflict.
// Messages that are published to it meanwhile wait in its queue, and the next commit takes them
// all, up to the limits of a transaction, or 32 KB in the layout journal.Packed. The version of the
// aggregate is remembered from one commit to the next, so steady publishing costs one round trip
// for each commit, however many messages and goroutines share it.
//
// Other processes and repositories may write to the same aggregate. The version is the condition of
// every commit; where it has moved, the commit is repeated at the new one, with growing random
// pauses, until [Config.CommitTimeout]. The same happens while DynamoDB throttles or cannot be
// reached. A message is never written twice by one Publish: where the reply to an attempt was lost,
// the next one requires the same version, so only one of them can be written, and the commit id of
// the event at that place shows which.
//
// [ExpectVersion] asks for the opposite: the messages are appended only to an aggregate of exactly
// that version, in a commit of their own, and a conflict is returned to the caller at once.
//
// # Contexts
//
// A commit carries the messages of many callers, so it runs under the Publisher's own context. The
// end of a message's context has no effect: [Config.CommitTimeout] and [Publisher.Close] end a
// Publish. Handlers return messages whose context has ended, as after Watermill's Timeout
// middleware, and these have to be publishable, to a poison queue for example.
//
// # Errors
//
// All messages are checked before the first is written, so nothing is written on
// [ErrPublisherClosed], [*TopicError] or [*MessageError]. Any later failure is a [*PublishError],
// which says for each aggregate that failed which messages are not written, and which of them may
// be.
//
// Delivery is at least once: a caller that repeats a Publish after an error whose messages may have
// been written (errors.Is with [journal.ErrOutcomeUnknown]) may write them twice.
package publisher
