// Package sim tests the guarantees of the read side by simulation: every committed event reaches
// every group, the events of an aggregate are never out of order, and an event is not delivered
// again once the position of the group is stored. A projection applies an event once. A process
// manager takes one step for an event. It sends the commands of the step with ids that stay the
// same, and its timeouts fire once.
//
//	make soak                                      # 400,000 deliveries
//	go run ./test/cmd/sim -seed 7 -world 42    # one world of it alone
//
// A run has many worlds ([World]), each drawn from its seed and number (plan.go): the layout of the
// journal, the numbers and settings of shards, topics, groups and members, the writers, and the
// faults. A world has a database of package dynamotest and processes (process.go) that share only
// that database. Each process has its own connection, a wire (wire.go), on which requests are slow,
// lost, cut and late. Processes crash, stall, close and start again (trouble.go) while writers
// commit (writer.go), handlers are slow, fail and hang (handler.go), and operators pause groups,
// which must not receive events then (operator.go). Some events are poisoned: handlers fail on them
// until they are repaired. Groups skip such events, park their aggregates or are stopped, as their
// policies say (failures.go), until an operator resumes them. In each third world there are few
// events, and groups project each event in a transaction or have process managers (saga.go), which
// crash within a step (manager.go). This phase is called the storm. Then all trouble ends. A member
// of each group crashes and must be replaced in time, and everything must arrive (finish.go). In
// the packed layout, groups then reconcile all aggregates if clocks were wrong by hours.
//
// Each world also has one or more disruptions (disruption.go):
//
//   - Requests of one kind are throttled for minutes (throttle.go).
//   - Owners are suspended while they write (suspension.go).
//   - Operators edit several aggregates of a shard, and earlier requests arrive after that
//     (editor.go).
//   - Clocks are a day off (clock.go).
//   - Old histories are imported (imports.go).
//   - Aggregates are truncated while groups are behind, or deleted while writers still write to
//     them (removals.go).
//   - The journal is exported in several attempts (exports.go).
//   - A read model is built again by resets and removals of its group, while transactions of its
//     handlers are late (rebuild.go).
//   - Entries appear late in the tail index, or eventually consistent reads return earlier items
//     (faults.go).
//   - Processes announce their commits to each other by hints that are lost, late, repeated or
//     forged, while idle shards are perhaps polled rarely (hints.go).
//   - Each process of a group works in bursts in every second life (bursts.go): with these hints,
//     and in sweeps on a schedule. Deadlines are short, and some processes crash in a burst. At the
//     end sweeps must handle everything without any other member.
//   - Handlers of half of the aggregates fail for a long time (disruption.go), while requests to
//     remove entries of the list of those behind arrive when there is a newer entry (straggler.go).
//
// Such a world ends with commits without any trouble, to measure how soon they are delivered
// (prompt.go). A world with -disrupt none has no disruptions.
//
// An oracle outside the database (oracle.go) sees each commit, delivery, ack, stored position,
// command, and record of a skipped event (records.go). It compares them as they happen, so that a
// finding has its time. A stored position promises that the events up to it are not delivered
// again, if its writer had the current epoch of the shard when it was stored, or once an owner of
// the shard has read it (history.go). Removed events may be delivered or not. All others must be
// delivered (removed.go). At the end the oracle compares projections with the events, archives with
// the events that were acknowledged before them and with the journal (archives.go), and each saga
// with the events that it recorded (remembered.go).
//
// # Determinism
//
// A world runs as a WebAssembly program (package guest). Its host (../cmd/sim) supplies its clock
// and random numbers. Go has one thread there and does not preempt goroutines, so the seed decides
// everything: which goroutine runs next, which case a select takes, the order of maps, every id,
// and all time. Time passes when all goroutines wait, so a pause costs nothing, and a deadline is
// kept to the nanosecond. Subscriber, journal, projection and the SDK run unchanged. The same
// program, seed and number lead to the same report and the same trace, byte for byte; the host
// prints a digest of the trace.
//
// The simulation cannot find data races, which need threads. The tests of the packages whose
// goroutines share the most state run with the race detector for those.
package sim
