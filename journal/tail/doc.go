// Package tail reads the events of a topic in the order of their times, and follows the topic as
// events are written. It needs no consumer group: it stores nothing, and no subscriber gets fewer
// events. It is for tools and pages that show what happens.
//
//	err := tail.Run(ctx, tail.Config{Journal: j, Topic: "account", Since: since, Follow: true}, func(events []*journal.Record) error {
//		... show the events, oldest first
//	})
//
// # Guarantees
//
// Run passes each event once, as long as it runs. It reads the journal's tail index, which is
// eventually consistent, and the clocks of writers differ. So a live read may pass the time of an
// event before the index shows it. A trailing read therefore reads the same times again, after
// [Config].TrailingDelay, and passes the events that the live read missed. These come late, behind
// events of later times. An event that becomes visible more than the delay after its time is not
// passed, such as one that an import writes with an old date (layout journal.Classic). A program
// that needs every event uses package subscriber.
//
// # Cost
//
// Reading costs half a read unit for each 4 KB of events in the tail index, and at least half a
// unit for each shard. Following costs with the defaults 0.6 read units in each second for each
// shard, whether or not events come: half a unit for the live read in each [Config].Interval, and
// half a unit for the trailing read in each half of the TrailingDelay. New events cost one read
// unit for each 4 KB, as they are read twice. In the layout journal.Packed each partition of the
// tail costs as much as a shard, and commits that the index does not have, as they are larger than
// about 1 KB, are read from the table at the same price.
//
// # Memory
//
// Run keeps up to 1 MB of events of each shard, and with Follow the ids and numbers of the events
// of a few TrailingDelays. A topic that is read from its beginning, or after a long outage, takes
// no more.
package tail
