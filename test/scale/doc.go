// Package scale measures a journal and its consumer groups at the size of a large deployment, on a
// database whose partitions have the throughput of DynamoDB's partitions.
//
//	make scale                                           # 256 shards, 50 members, 10,000 events/s
//	make scale SCALE='-scale.shards=8 -scale.rate=4000'  # another world
//
// A [World] has a number of shards, processes and consumer groups. Each process is a member of each
// group and has its own journal and client, with the default settings of the SDK. Writers commit
// one event at a time to random aggregates, at a steady rate, from other processes, so that no
// commit wakes a subscriber. Handlers only ack. Requests take some milliseconds, and indexes are
// behind their tables.
//
// The world runs in a bubble of testing/synctest. Its clock stands still while anything works. So
// the measured latencies and rates depend only on the requests of the library and the limits of the
// partitions, not on the machine. They do not include processor time.
//
// The [Report] says how fast events arrived, what they cost by table and index, and which
// partitions refused how many requests for lack of capacity. Every event must arrive, in order.
package scale
