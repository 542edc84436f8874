// Package tail reads the events of a topic in the order of their times, and follows the topic as
// events are written. It is for tools and pages that show events as they happen. It needs no
// consumer group, stores nothing, and does not affect subscribers.
//
//	err := tail.Run(ctx, tail.Config{Journal: j, Topic: "account", Since: since, Follow: true},
//		func(events []*journal.Record) error {
//			... show the events, oldest first
//		})
//
// # Guarantees
//
// While it runs, Run passes each event once. It makes two kinds of reads of the journal's tail
// index. The live read reads the newest events. The index is eventually consistent and the clocks
// of writers differ, so the live read may pass the time of an event before the index contains it.
// The trailing read therefore reads the same times again, after [Config].TrailingDelay, and passes
// the events that the live read missed. These come after events with later times.
//
// Run does not pass an event that becomes visible more than TrailingDelay after its time. An
// example is an imported event with an old date in the layout journal.Classic. A program that needs
// every event uses package subscriber.
//
// # Cost
//
// Reading costs half a read unit for each 4 KB of events in the tail index, and at least half a
// unit for each shard. Following costs 0.6 read units a second for each shard with the defaults,
// whether or not events come. The live read costs half a unit in each [Config].Interval, and the
// trailing read half a unit in each half of the TrailingDelay. New events cost one read unit for
// each 4 KB, because they are read twice.
//
// In the layout journal.Packed each partition of the tail costs as much as a shard. The index lacks
// the events of commits larger than about 1 KB. These are read from the table at the same price.
//
// # Memory
//
// Run keeps up to 1 MB of events of each shard. With Follow, it also keeps the ids and numbers of
// the events of a few TrailingDelays. It needs no more for a topic that it reads from the
// beginning, or after a long outage.
package tail
