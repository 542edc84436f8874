// Package subscriber is a Watermill subscriber that tails a journal: each consumer group gets every
// event of a topic at least once, in order per aggregate.
//
//	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "order-history"}, logger)
//	messages, err := sub.Subscribe(ctx, "order") // or router.AddConsumerHandler(...)
//
// # Contract
//
// A topic is an aggregate type. Within a group each event is delivered until it is acked. The next
// event of the same aggregate is delivered only after that. Events of different aggregates are
// delivered side by side, up to [Config.MaxInFlight].
//
// A nacked message comes again after a pause ([Config.NackResendSleep]). So does a message that is
// not answered within [Config.AckDeadline], if that is set, and one whose event cannot be read,
// decoded or unmarshaled. Such an event blocks its own aggregate and no other. [Config.Failures]
// can park the aggregate after some attempts, send the event to a poison queue, skip it with a
// record, or stop the group.
//
// Nothing else is skipped, except for events that are filtered out or cannot be read: types that
// were not requested ([Config.EventTypes]), events whose encryption key was destroyed
// ([journal.ErrKeyDestroyed]), and events that were removed ([*journal.TruncatedError]). They are
// passed over and counted ([Stats]). A read model that holds data of such an aggregate is not told
// of it.
//
// Positions are stored shortly after the ack ([Config.CommitInterval]). After a crash, events that
// were acked and not stored come again; after [Subscriber.Close] none do. A handler can commit the
// position with its effects, see [Position]. Package projection does so in DynamoDB, and
// projection/sqlprojection in SQL databases ([Config.Positions]).
//
// # Messages
//
// The UUID is the event id, and the payload is that of the event. The metadata is the event's own,
// with name (the event type, as Watermill's cqrs.JSONMarshaler has it), aggregate_id,
// aggregate_type, sequence_number and occurred_at added. [RecordFromContext] and
// [AggregateFromContext] return the same with types, and [AttemptFromContext] returns how often the
// message came.
//
// The context has the values of Subscribe's. It ends with the ack or nack, when the shard is lost,
// and [Config.CloseTimeout] after Close or after the end of Subscribe's context.
//
// # How it works
//
//	poll -> sequence -> lanes -> ack -> checkpoint
//
// Two numbers of each aggregate decide what is delivered: its head, and the group's position.
// Everything else is a hint that an aggregate has new events:
//
//   - The live read reads the tail index of each logical shard from a cursor on, and polls its end.
//   - Trailing reads read the same stretch again once it is 0.5 seconds old, and once more when it
//     is [Config.TrailingDelay] old (only then if that is below a second), because the index is
//     eventually consistent and clocks differ. So each event is read about three times. Events that
//     are already that old when they are first read, as all of history is for a new group, are read
//     once. A backlog does not postpone trailing reads.
//   - A commit in this process through the same [journal.Journal] wakes the aggregate at once.
//   - A reconciliation, called reconciliation in names, compares the journal with the positions every
//     [Config.ReconcileInterval]: all heads, or in the packed layout what was written lately. It finds
//     events that the tail shows late or at the wrong place, such as imports and events that a
//     program or a clock has dated wrongly.
//
// An event at or below the position is a duplicate and is dropped. The next event is delivered.
// Before a later one, the gap is read from the journal.
//
// The stored cursor of a shard stays before every event that is not acked and stored, unless its
// aggregate is on the stored list of aggregates that are behind. A restart reads the list, and the
// tail from the cursor on.
//
// # Members
//
// The subscriptions of one group to one topic are its members, in one process or many. They share
// the logical shards evenly, plus or minus one. If there are more members than shards, some stand
// by. When a member joins, the others hand over shards within a quarter of [Config.LeaseDuration]:
// they finish the messages that are out, store the positions, and release the shard. When a member
// closes, the others take over within the same time; when it crashes, after [Config.LeaseDuration]
// and a quarter.
//
// Each time a shard changes hands it has a new epoch, which is stamped on every position that is
// stored. A former owner that does not know yet can store what its handlers have acked until the
// new owner has stored something, and never moves a position back. So an event does not come again
// once the owner of that time has stored its position. Transactions of a former owner's handlers
// ([Position.Commit]) fail once the new owner's handler begins one.
//
// Package groups lists groups with their lag, pauses, resets and removes them, and lists what was
// parked or skipped.
//
// # A restored journal
//
// If the journal is restored from a backup and the checkpoint table is not, positions may lie
// beyond the last events of their aggregates. New events with those numbers would count as handled
// and be dropped. So reset each group after a restore (Reset of package groups), before anything is
// written. If only a few aggregates are concerned, reset each of them instead to the last event
// that counts as handled (ResetAggregate).
//
// A reconciliation logs positions that are beyond as errors and counts them ([Stats].Beyond); it changes
// nothing. It does not see aggregates that are missing in the restored journal, nor those that have
// grown again to where they were.
//
// # Cost
//
// In DynamoDB's units, for one group and topic:
//
//   - Half a read unit for each poll of a shard, so about 0.55 per second and shard while idle
//     with default settings.
//   - For each 4 KB of events half a read unit for the live read, and half for each of the two
//     trailing reads (one if [Config.TrailingDelay] is below a second). In the packed layout these
//     read an index that has only small items whole; half a unit more for each 4 KB of the others.
//   - One read unit for each 4 KB of an event that this process has committed; it is read by key.
//   - One write unit for each aggregate that got further in a CommitInterval.
//   - For the first event of an aggregate under an epoch, except under the first one of a new
//     group, a read unit for its position, or a write unit where handlers commit positions or
//     events are skipped.
//   - One write unit every 5 seconds for the cursor of a shard that moves.
//   - For each member, in each quarter of [Config.LeaseDuration], a write unit for each KB of the
//     group's row, which grows with shards and members; docs/reference/cost.md has figures.
//   - For a takeover of a shard two write units. For each aggregate that is listed as behind also a
//     read of its head, and of its position; for one that is parked that of its position alone. The
//     read of a head costs one unit for each 4 KB: of the state in the classic layout, and of the
//     last commit in the packed layout.
//   - For a reconciliation in the classic layout half a read unit for each 4 KB of heads, states included,
//     and of positions, which have some 100 bytes each. In the packed layout half a unit for each 4
//     KB of index entries that it reads again, and half a unit for each aggregate among them;
//     docs/reference/cost.md says which.
package subscriber
