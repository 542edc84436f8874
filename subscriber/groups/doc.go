// Package groups operates consumer groups: it lists them with their lag, and pauses, resumes,
// resets and removes them, from any process that can reach the tables.
//
//	g := groups.New(j)
//	all, err := g.List(ctx)
//	lag, err := g.Lag(ctx, "order-history", "order", groups.LagOptions{})
//
// A consumer group has the name in subscriber.Config.ConsumerGroup, and works on one
// topic, which is an aggregate type. The same name on two topics is two groups here.
//
// A group may keep its positions in a store of its own (subscriber.Config.Positions), as SQL read
// models do. [WithPositions] lets this package read them. [Groups.Skip] and [Groups.ResetAggregate]
// refuse such a group with [ErrExternalPositions]; everything else works for it too.
//
// # Lag
//
// [Groups.Lag] is exact: it compares the heads of all aggregates with the group's positions.
// [Groups.Estimate] is cheap: it reads one page of each shard's tail, behind the place up to which
// the group is known to be done. Its result is a lower bound.
//
// # A new read model
//
//	g.Pause(ctx, group, topic)                              // no more messages go out,
//	g.WaitIdle(ctx, group, topic)                           // and those that were out are acked or given up
//	...                                                     // clear the read model
//	g.Reset(ctx, group, topic, subscriber.Beginning(), nil) // the group has no positions any more
//	g.Resume(ctx, group, topic)
//
// Members keep running. They see each change with their next heartbeat, within a quarter of
// subscriber.Config.LeaseDuration, which is 2.5 seconds by default.
//
// # Reading one's own write
//
// A read model lags behind the journal. [Groups.WaitApplied] waits until a group has applied a
// given event, so that a program can query what it has just written. For a read model in an SQL
// database, the positions are read from there:
//
//	g := groups.New(j, groups.WithPositions(store)) // a sqlprojection.Store
//
// # One aggregate
//
// [Groups.Behind] lists the aggregates that hold the group up. [Groups.Parked] lists those of them
// that the group does not try any more (subscriber.Park). [Groups.Unpark] has their events tried
// again, [Groups.Skip] passes over a single event, and [Groups.ResetAggregate] puts the group
// anywhere in the aggregate's history. [Groups.Skipped] lists the events that were passed over, by
// an operator or because they kept failing (subscriber.Skip), and [Groups.ForgetSkipped] deletes
// such a record. [Groups.UnparkAll] and [Groups.SkipAll] do this for any number of parked
// aggregates at once, which a [Selection] selects, and [Groups.SelectParked] lists them before. A
// group that an event has stopped (subscriber.Stop) is a paused group; [Group].Stopped names the
// event and the reason.
//
// These edits take the aggregate's logical shard from its owner, change its rows and free it. The
// owner may be alive, in the middle of a handler, or asleep: the rows have a newer epoch then, and
// its writes are refused. As after a crash, events of the shard that were acked and not stored yet
// (subscriber.Config.CommitInterval) are delivered again, for all its aggregates. Effects that
// commit with the position happen once.
//
// # Topics that are queues
//
// Messages that are published without an aggregate id stay in the stream of their publisher.
// [Groups.Trim] removes those that are old and that all groups of the topic have handled, and
// [Groups.TrimEvery] does so again and again.
//
// # After an import
//
// Members compare the heads of all aggregates with the group's positions once an hour
// (subscriber.Config.ReconcileInterval), which finds events that the tail shows at the wrong place,
// such as imported ones. [Groups.Reconcile] has them do so at once, and [Groups.WaitReconciled]
// waits until they have. In the packed layout imported events are in their place; there members
// compare what was written lately, and all aggregates once a week and after [Groups.Reconcile].
//
// # Cost
//
// In DynamoDB's units, with rows of up to 1 KB, which is a group on about a hundred shards: one
// read to get a group; one read and one write for a pause, a resume, and a reset without its
// clean-up; up to eight reads and eight writes for an edit of an aggregate, and more if its state
// is over 4 KB. The costs of the clean-up after a reset, of the removal and of the exact lag grow
// with the table. Each method says how.
package groups
