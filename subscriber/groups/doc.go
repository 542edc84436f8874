// Package groups operates consumer groups from any process that can reach the tables. It lists
// groups and measures their lag. It pauses, resumes, resets and removes groups, and it unblocks
// aggregates.
//
//	g := groups.Of(j, "order-history", "order") // a handle of the group on its topic
//	lag, err := g.Lag(ctx, groups.LagOptions{})
//	if err != nil {
//		return err
//	}
//	fmt.Printf("%s on %s has %d events to handle\n", g.Name(), g.Topic(), lag.Events)
//
// [Of] returns a [Group], which operates one group on one topic. [New] returns [Groups], which
// lists all groups, returns their handles, and operates a group on one aggregate: its id holds the
// topic.
//
// # Terms
//
// A consumer group has a name (subscriber.Config.ConsumerGroup), and works on one topic. The topic
// of an event is its aggregate type. In this package the same name on two topics means two groups.
// A member is one subscription of the group. The members divide the logical shards of the topic
// among themselves.
//
// The position of a group in an aggregate is the number of the last event that the group has
// handled. The lag is the number of events beyond the positions. An aggregate is blocked while an
// event of it fails and is tried again, or its handler takes long. An aggregate is parked
// (subscriber.Park) when the group no longer tries its event, and waits for an operator.
//
// External positions are positions that members store outside of the checkpoint table
// (subscriber.Config.Positions), for example in an SQL database. [WithPositions] makes this package
// read them. Operations that change positions refuse such a group with [ErrExternalPositions]. The
// positions of a projection.Rows are rows of its read model. The group says where they are, so all
// operations work on it.
//
// # Lag
//
// [Group.Lag] is exact: it compares the last events of all aggregates with the group's positions.
// [Group.Estimate] is cheap: it reads one page of each shard's tail, from the group's cursor on.
// Its result is a lower bound.
//
// # Rebuild a read model
//
//	g := groups.Of(j, "order-history", "order")
//	g.Pause(ctx)                              // members deliver no more messages
//	g.WaitIdle(ctx)                           // no handler has an effect any more
//	...                                       // clear the read model
//	g.Reset(ctx, subscriber.Beginning(), nil) // the group has no positions any more
//	g.Resume(ctx)
//
// Members keep running. They see each change with their next heartbeat, within a quarter of
// subscriber.Timing.LeaseDuration, which is 2.5 seconds by default.
//
// # Read your own writes
//
// A read model lags behind the journal. [Groups.WaitApplied] waits until a group has applied an
// event, so that a program can query what it has just written. For a read model in an SQL database,
// pass the store of the positions:
//
//	g := groups.New(j, groups.WithPositions(store)) // a sqlprojection.Store
//
// # Edit one aggregate, or many
//
// [Group.Behind] lists the aggregates that are blocked or parked, and [Group.Parked] lists only
// the parked ones. For one aggregate:
//
//   - [Groups.Unpark] tries the events of a parked aggregate again.
//   - [Groups.Skip] skips a single event.
//   - [Groups.ResetAggregate] sets the group's position in the aggregate.
//
// For many parked aggregates, which a [Selection] selects: [Group.SelectParked] lists them,
// [Group.UnparkAll] tries their events again, and [Group.SkipAll] skips the failed events.
//
// [Group.Skipped] lists the events that were skipped, by an operator or because they kept failing
// (subscriber.Skip), and those that were deferred (subscriber.Defer). [Groups.RetrySkipped] tries
// such an event again, and [Groups.ForgetSkipped] deletes its record.
//
// A group that was stopped by an event (subscriber.Stop) is a paused group. [Status].Stopped holds
// the event and the reason.
//
// An edit takes the aggregate's logical shard from its owner, changes rows, and frees the shard.
// The owner may still be alive. Its later writes are refused, since the rows have a newer epoch. As
// after a crash, events of the shard that were acked but whose positions were not stored yet
// (subscriber.Timing.CommitInterval) are delivered again, for all aggregates of the shard. Effects
// that commit with the position happen once.
//
// # Topics that are queues
//
// Messages that are published without an aggregate id stay in the stream of their publisher.
// [Groups.Trim] removes the old messages that all groups of the topic have handled.
// [Groups.TrimEvery] does so at an interval.
//
// # After an import
//
// Reconciliation compares the last events of all aggregates with the group's positions. It finds
// events that the tail shows at the wrong place, such as imported events. Members reconcile once an
// hour (subscriber.Timing.ReconcileInterval). [Group.Reconcile] requests it at once, and
// [Group.WaitReconciled] waits for its end.
//
// In the packed layout the tail shows imported events at the right place. There the hourly
// reconciliation compares only recent writes. It compares all aggregates once a week, and after
// [Group.Reconcile].
//
// # Cost
//
// These are the costs in DynamoDB's units if rows are smaller than 1 KB, as for a group with fewer
// than about a hundred shards:
//
//   - Get: one read.
//   - Pause, Resume, Reset without its clean-up: one read and one write.
//   - An edit of an aggregate: up to eight reads and eight writes, and more if the state of the
//     aggregate is over 4 KB.
//
// The costs of Lag, Remove and the clean-up after a reset grow with the table; see each method.
package groups
