// Package publisher stores Watermill messages as events in DynamoDB. A [Publisher] is a
// message.Publisher. It appends each message to an aggregate, and Publish returns nil when the
// messages are durable.
//
//	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, logger)
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	placed := message.NewMessage(watermill.NewUUID(), []byte(`{"total": 700}`))
//	placed.Metadata.Set(publisher.NameKey, "order.placed.v1")
//	placed.Metadata.Set(publisher.AggregateIDKey, "1234")
//	return p.Publish("order", placed)
//
// # Aggregate of a message
//
// The topic is the aggregate type. The metadata [AggregateIDKey] is the aggregate's id, unless
// [Config].AggregateID returns the id. The message's UUID, payload and metadata are stored as they
// are. The metadata [NameKey] becomes the event type. UUIDs have no meaning: two messages with the
// same UUID become two events.
//
// A message without an id goes to the stream of the Publisher, which is the aggregate with the id
// [Config].StreamID. By default no other process writes to this aggregate, so messages without an
// id keep their order, and there are no conflicts. Such streams grow. groups.Groups.Trim and
// TrimDue remove the events that all consumer groups have handled. They recognize these events by
// the metadata own_stream, which the journal adds to the stored event. The events of topics in
// [Config].Queues have it too.
//
// Do not publish to the aggregates of a repository, unless its definition knows the event type. A
// published message becomes an event of the aggregate, so every load replays it. The load fails if
// the definition does not have the type, or cannot decode the payload. To publish other messages
// about such an aggregate, use a separate topic.
//
// # Order and transactions
//
// Publish appends the messages of each aggregate in the order of its arguments. If they fit into
// one transaction of DynamoDB, which is 99 events and 4 MB, it commits all of them or none. More
// messages take several transactions, one after the other; Publish stops at the first that fails.
// Different aggregates are written in parallel, [Config].Concurrency at a time, in no particular
// order.
//
// # Group commit
//
// A Publisher makes one commit at a time for each aggregate, because concurrent commits would
// conflict. Messages that are published meanwhile wait in a queue. The next commit takes all of
// them, up to the limits of a transaction, or 32 KB in the layout journal.Packed. The Publisher
// caches the version of the aggregate, so each commit costs one round trip, however many messages
// and goroutines share it.
//
// Other processes and repositories may write to the same aggregate. Each commit has the version as
// its condition. If the version has changed, the commit is repeated at the new version, with random
// pauses that grow, until [Config].CommitTimeout. Commits are also repeated while DynamoDB
// throttles or cannot be reached.
//
// One Publish never writes a message twice. If the reply to an attempt was lost, the next attempt
// requires the same version, so only one of them can be written. The commit id of the stored event
// shows which one.
//
// [SetExpectedVersion] makes Publish append a message only if the aggregate has a certain version.
// Such a message has a commit of its own, and a conflict is returned at once.
//
// # Contexts
//
// A commit contains messages of several callers, so it does not use the contexts of messages. Only
// [Config].CommitTimeout and [Publisher.Close] end a Publish. So a handler can return a message
// whose context has ended, as after Watermill's Timeout middleware, and a poison queue can publish
// it.
//
// # Errors
//
// Publish checks all messages before it writes the first one. After [ErrPublisherClosed],
// [*TopicError] and [*MessageError] nothing is written. Every other error is a [*PublishError]. It
// says for each aggregate which messages are not written, and which may have been written.
//
// Delivery is at least once: a caller that repeats a Publish may write messages twice if the error
// was a [journal.ErrOutcomeUnknown].
package publisher
