// Package scale measures a journal and its consumer groups at the size of a large deployment, on a
// database whose partitions have the throughput of DynamoDB's.
//
//	make scale                                           # 256 shards, 50 members, 10,000 events/s
//	make scale SCALE='-scale.shards=8 -scale.rate=4000'  # another world
//
// A [World] has a number of shards, processes and consumer groups. Each process is a member of each
// group and has a journal and a client of its own, with the settings of the SDK. Writers commit one
// event at a time to random aggregates, at a steady rate, from other processes, so that no commit
// wakes a subscriber. Handlers do nothing but ack. Requests take some milliseconds, and indexes lag
// behind their tables.
//
// The world runs in a bubble of testing/synctest. Its clock stands still while anything works, so
// latencies and rates are those of the requests that the library makes and of the partitions that
// it uses, whatever the machine does. They do not contain the time that a processor would need.
//
// The [Report] says how fast events came, what they cost by table and index, and which partitions
// had too little left for how many calls. Every event must arrive, in order.
package scale
