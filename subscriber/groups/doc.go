// Package groups is for those who operate consumer groups: it lists them, tells how far behind they are, and pauses, resumes,
// resets and removes them, from any process that can reach the tables.
//
//	g := groups.New(j)
//	all, err := g.List(ctx)
//	lag, err := g.Lag(ctx, "order-history", "order", groups.LagOptions{})
//
// A consumer group is named by what subscriber.Config.ConsumerGroup says, and works on one topic, which is an aggregate type. The
// same name on two topics is two groups here. A group may keep its
// positions in a store of its own (subscriber.Config.Positions), as those of SQL read models do: see [WithPositions] for what needs them to be read.
// [Groups.Skip] and [Groups.ResetAggregate] refuse such a group with [ErrElsewhere]; everything else works as always.
//
// # Lag
//
// [Groups.Lag] is exact: it compares the heads of all aggregates with the group's positions. [Groups.Estimate] is cheap: it looks at
// one page of each shard's tail, behind the place up to which the group is known to be done, and says "at least".
//
// # A new read model
//
//	g.Pause(ctx, group, topic)                              // no more messages go out,
//	g.WaitIdle(ctx, group, topic)                           // and those that were out are acked or given up
//	...                                                     // clear the read model
//	g.Reset(ctx, group, topic, subscriber.Beginning(), nil) // the group has no positions any more
//	g.Resume(ctx, group, topic)
//
// Members need not be stopped for any of this. They learn of it with their next sign of life, which is a quarter of
// subscriber.Config.LeaseDuration away at most, 2.5 seconds by default.
//
// # Reading one's own write
//
// A read model is behind the journal by as much as it takes to consume an event. [Groups.WaitApplied] waits until a group has applied a given event, so
// that whoever has just written can query what they wrote. Where the read model is in an SQL database:
//
//	g := groups.New(j, groups.WithPositions(store)) // a sqlprojection.Store
//
// # One aggregate
//
// [Groups.Behind] lists the aggregates that hold the group up, [Groups.Parked] those that it has given up until someone decides
// (subscriber.Park). [Groups.Unpark] has their events tried again, [Groups.Skip] passes over a single event, and [Groups.ResetAggregate]
// puts the group anywhere in the aggregate's history. [Groups.Skipped] lists what was passed over, by an operator or because it kept failing
// (subscriber.Skip), and [Groups.ForgetSkipped] drops such a record. A group that an event has stopped (subscriber.Stop) is a paused one
// with [Group].Stopped to say why.
//
// These take the aggregate's logical shard from its owner, edit its rows and free it. It does not matter whether the owner is alive, is in
// the middle of a handler, or is a process that slept and does not know yet that it was given up: the rows bear a newer epoch, and
// its writes are refused. As after a crash, events of the shard that were acked and not yet stored
// (subscriber.Config.CommitInterval) come again, of all its aggregates; effects that commit with the position happen once.
//
// # Cost
//
// In DynamoDB's units, with rows of up to 1 KB, which is a group on about a hundred shards: one read for a look at a group; one read and one
// write for a pause, a resume, and a reset without its clean-up; up to eight reads and eight writes for an edit of an aggregate, more if its state is over 4 KB.
// What grows with the table is the clean-up after a reset, the removal and the exact lag; each tells how.
package groups
