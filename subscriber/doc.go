// Package subscriber is a Watermill subscriber that tails a journal: each consumer
// group gets every event of a topic at least once, in order per aggregate.
//
//	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "order-history"}, logger)
//	messages, err := sub.Subscribe(ctx, "order") // or router.AddConsumerHandler(...)
//
// # Contract
//
// A topic is an aggregate type. Within a group each event is delivered until it is
// acked, the next event of the same aggregate only after that; events of different
// aggregates come side by side, up to [Config.MaxInFlight]. A nacked message comes again after
// a pause ([Config.NackResendSleep]), and so does one that is not answered within [Config.AckDeadline], if that is set, or whose event cannot be
// read, decoded or unmarshaled. Either blocks its own aggregate and no other; [Config.Failures] can park the aggregate after some
// attempts, send the event to a poison queue, skip it with a record, or stop the group. Nothing else is ever skipped, but for what was given up on
// purpose: types that were not asked for ([Config.EventTypes]), events that can never be decoded
// again, since the key of their aggregate was destroyed ([journal.ErrKeyDestroyed]), and events that were removed
// ([journal.ErrTruncated]) are passed over, which is counted ([Stats]). A read model that holds data of such an
// aggregate is not told of it.
//
// Positions are stored a little after the ack ([Config.CommitInterval]). After a crash,
// what was acked and not stored comes again; after [Subscriber.Close] nothing does. A handler can commit the position
// with its effects, see [Position]: package projection does so in DynamoDB, projection/sqlprojection in
// SQL databases ([Config.Positions]).
//
// # Messages
//
// UUID is the event id, the payload the raw event. Metadata is the event's own, with name (the event
// type, as Watermill's cqrs.JSONMarshaler has it), aggregate_id, aggregate_type, sequence_number and
// occurred_at added. [RecordFromContext] and [AggregateFromContext] give the same typed, [AttemptFromContext]
// how often the message came. The context has the values of Subscribe's; it ends with
// the ack or nack, when the shard is lost, and [Config.CloseTimeout] after Close or the end of Subscribe's context.
//
// # How it works
//
//	poll -> sequence -> lanes -> ack -> checkpoint
//
// The truth is two numbers for each aggregate: its head, and the group's position. Everything else is a
// hint that an aggregate has moved:
//
//   - The first look reads the tail index of each logical shard from a cursor on, and polls its end.
//   - The second look reads the same stretch again once it is [Config.TrailingDelay] old, because the
//     index is eventually consistent and clocks differ. So each event is read about twice; what is
//     already old when it is first read, as all of history is for a new group, is read once.
//   - A commit in this process through the same [journal.Journal] wakes the aggregate at once.
//   - A sweep compares all heads with the positions, each [Config.SweepInterval]. It finds what the tail shows at the wrong place:
//     imports, and events of programs or clocks that date them wrongly.
//
// An event at or below the position is a duplicate and dropped. The one after it is delivered. Before
// one further on, the gap is read from the journal.
//
// The stored cursor of a shard stays before every event that is not acked and stored, unless its
// aggregate is on the durable list of those behind. A restart reads the list, and the tail from the cursor on.
//
// # Members
//
// The subscriptions of one group to one topic are its members, in one process or many. They share the logical shards, each as many as the
// others, give or take one; with more members than shards some stand by. When a member joins, the others hand shards over within a
// quarter of [Config.LeaseDuration]: they finish what is out, store the positions, and let go. When one closes, the others take
// over within as long; when one crashes, after [Config.LeaseDuration] and a quarter. Each time a shard changes hands it has another
// epoch, which is stamped on every position before its first use; a former owner cannot move a position any more.
//
// Package groups lists groups with their lag, pauses, resets and removes them, and lists what was parked or skipped.
//
// # A restored journal
//
// Where the journal is restored from a backup and the checkpoint table is not, positions may lie beyond the last events of their
// aggregates. New events with those numbers would count as handled and be dropped. So reset each group after a restore (Reset of
// package groups), before anything is written, or, if few aggregates are concerned, each of these to the event that its handlers are to
// go on behind (ResetAggregate). A sweep finds positions that are beyond: it logs them as errors and counts them
// ([Stats].Beyond), and changes nothing. It sees neither aggregates that the restored journal does not have at all, nor those that have
// grown again to where they were.
//
// # Cost
//
// In DynamoDB's units, for one group and topic: half a read unit a look at each shard, so
// some Shards/2 a second while idle with default settings; one read unit for each 4 KB of events, half on each look;
// one read unit for an event of this process's own commits (it is read by key); one write unit for the first
// event of an aggregate under an epoch (none under the first of a new group), and one for each aggregate that got further in a
// CommitInterval; one write unit each 5 seconds for the cursor of a shard that moves; for each member one write unit in each
// quarter of [Config.LeaseDuration] (one more for each hundred shards); for a takeover of a shard two write units and, for each
// aggregate that is listed as behind, a read of its head (one unit for each 4 KB, state included) and a write unit for its entry,
// and one more to claim its position if it is parked; for a sweep half a read unit for each 4 KB of heads, states
// included, and of positions, which are some 100 bytes each.
package subscriber
