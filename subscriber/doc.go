// Package subscriber delivers the events of a DynamoDB journal to Watermill handlers. It implements
// message.Subscriber. Each consumer group receives every event of a topic at least once, and the
// events of an aggregate in order.
//
//	config := subscriber.Config{Journal: j, ConsumerGroup: "audit"}
//	sub, err := subscriber.NewSubscriber(config, watermill.NewSlogLogger(nil))
//	if err != nil {
//		log.Fatal(err)
//	}
//	messages, err := sub.Subscribe(ctx, "account") // all events of accounts
//	if err != nil {
//		log.Fatal(err)
//	}
//	for msg := range messages {
//		id, number, _ := subscriber.AggregateFromContext(msg.Context())
//		fmt.Println(id, number, msg.Metadata.Get(subscriber.NameKey))
//		msg.Ack()
//	}
//
// Most programs pass the subscriber to a Watermill router instead, or use package millrace, which
// connects the parts of an application.
//
// # Delivery
//
// A topic is an aggregate type. Within a group each event is delivered until it is acked. The next
// event of the same aggregate is delivered only after that. Events of different aggregates are
// delivered concurrently, up to [Config.MaxInFlight].
//
// A nacked message is delivered again after a pause ([Config.NackResendSleep]). The same happens to
// a message that is not answered within [Config.AckDeadline], and to an event that cannot be read,
// decoded or unmarshaled. Such an event blocks its own aggregate. By default it is retried forever.
// [Config.Failures] can also park the aggregate after some attempts, send the event to a poison
// queue, skip it with a record, retry it later by itself, or stop the group.
//
// Some events are passed over without a delivery and are counted in [Stats]: events of types that
// are not in [Config.EventTypes], events whose encryption key was destroyed
// ([journal.ErrKeyDestroyed]), and events that were removed ([*journal.TruncatedError]). A read
// model receives no message about the last two.
//
// Positions are stored shortly after the ack ([Timing.CommitInterval]). After a crash, events that
// were acked and whose position was not stored are delivered again. After [Subscriber.Close] none
// are. A handler can commit the position together with its effects, see [Position]. Package
// projection does so in DynamoDB, and projection/sqlprojection in SQL databases
// ([Config.Positions]).
//
// # Messages
//
// The UUID of a message is the event id, and its payload is that of the event. Its metadata is that
// of the event, and also name (the event type, as Watermill's cqrs.JSONMarshaler sets it),
// aggregate_id, aggregate_type, sequence_number and occurred_at. [RecordFromContext] and
// [AggregateFromContext] return the same as typed values, and [AttemptFromContext] returns the
// number of deliveries.
//
// The context of a message has the values of Subscribe's context. It ends with the ack or nack,
// when the shard is lost, and [Config.CloseTimeout] after Close or after the end of Subscribe's
// context.
//
// # Members
//
// The subscriptions of one group to one topic, in one process or many, are the members of the
// group. They share the shards of the topic evenly, plus or minus one. If there are more members
// than shards, some have no work. A change of members moves shards:
//
//   - When a member joins, the others release shards within a quarter of [Timing.LeaseDuration].
//     They finish the messages in handling, store the positions, and release the shard.
//   - When a member closes, the others take over its shards within the same time.
//   - When a member crashes, the others take over after [Timing.LeaseDuration] and a quarter.
//
// The epoch of a shard rises with each change of its owner, and is stored with every position. A
// former owner that does not know of the change can store the positions of events that its handlers
// have acked until the new owner has stored something. It never moves a position back. So an event
// is not delivered again once the member that owned the shard at that time has stored its position.
// Transactions of a former owner's handlers ([Position.Commit]) fail after a handler of the new
// owner has begun one.
//
// A broadcast ([NewBroadcast]) has no group. Each of its subscriptions receives all events.
//
// Package groups lists groups with their lag, and pauses, resets and removes them. It also lists
// parked aggregates and skipped events.
//
// # How it works
//
// Two numbers of each aggregate decide what is delivered: its version, and the group's position. An
// event at or below the position is a duplicate and is dropped. The next event is delivered. If a
// later event is found first, the events before it are read from the journal.
//
// Four sources report that an aggregate has new events:
//
//   - The live read reads the tail of each shard from a cursor on, and polls its end.
//   - Trailing reads read the same part of the tail again when it is 0.5 seconds old, and once more
//     when it is [Timing.TrailingDelay] old. If TrailingDelay is below a second, there is only the
//     second of these reads. Trailing reads are necessary because the index is eventually
//     consistent and clocks differ. So each event is read about three times. Events that are
//     already that old when they are first read, such as history for a new group, are read once. A
//     backlog does not postpone trailing reads.
//   - A commit in this process through the same [journal.Journal] wakes the aggregate at once. So
//     does a wake-up from another process (package wakeup), which is only a reason to read.
//   - A reconciliation compares the journal with the positions every [Timing.ReconcileInterval]:
//     all heads in the classic layout, and recent events in the packed layout. It finds events that
//     the tail shows late or at the wrong place, such as imported events, and events that a program
//     or a clock has dated wrongly.
//
// The stored cursor of a shard stays before every event whose position is not stored, unless its
// aggregate is on the stored list of aggregates that are behind. A restart reads the list, and the
// tail from the cursor on.
//
// # A restored journal
//
// If the journal is restored from a backup and the checkpoint table is not, positions may be beyond
// the last events of their aggregates. New events with those numbers would count as handled and be
// dropped. So reset each group after a restore (Reset of package groups), before anything is
// written. If only a few aggregates are concerned, reset each of them to the last event that counts
// as handled (ResetAggregate).
//
// A reconciliation logs each position that is beyond the journal as an error and counts it in
// [Stats].Beyond. It changes no position. It does not find aggregates that are missing in the
// restored journal, or aggregates that have as many events again.
//
// # Cost
//
// In DynamoDB's capacity units, for one group and topic:
//
//   - Idle: half a read unit for each poll of a shard, so about 0.55 per second and shard with
//     default settings.
//   - Reading the tail: for each 4 KB of events, half a read unit for the live read and half for
//     each of the two trailing reads (one if [Timing.TrailingDelay] is below a second). In the
//     packed layout these read an index that contains only small items completely. Each 4 KB of the
//     other items cost half a unit more.
//   - An event that this process has committed: one read unit for each 4 KB. It is read by key.
//   - Positions: one write unit in a CommitInterval for each aggregate whose position has changed.
//   - The first event of an aggregate under an epoch, except under the first epoch of a new group:
//     one read unit for its position, or one write unit if handlers commit positions or events are
//     skipped.
//   - The cursor of a shard with new events: one write unit every 5 seconds.
//   - Each member: in each quarter of [Timing.LeaseDuration], one write unit for each KB of the
//     group's row, which grows with shards and members.
//   - A takeover of a shard: two write units. Also, for each aggregate that is listed as behind, a
//     read of its position and of its head, or only of its position if it is parked. The read of a
//     head costs one unit for each 4 KB: of the state in the classic layout, and of the last commit
//     in the packed layout.
//   - A reconciliation in the classic layout: half a read unit for each 4 KB of heads, including
//     states, and of positions (about 100 bytes each). In the packed layout: half a unit for each 4
//     KB of index entries that it reads again, and half a unit for each aggregate among them.
//
// docs/reference/cost.md has figures.
//
// # Errors
//
// Subscribe and the functions for handlers return the errors of this package ([ErrFenced] and
// others) and those of package journal. A failure while events are delivered is logged and retried,
// and counted in [Stats].
package subscriber
