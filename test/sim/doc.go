// Package sim shows by simulation that the read side keeps its promises: every committed event
// reaches every group, per aggregate never out of order, and never again once the group's position
// is stored. A projection applies it once; a process manager takes one step on it, whose commands
// go out with ids that stay the same, and whose timeouts fire once.
//
//	make soak                                      # ten million deliveries
//	go run ./test/cmd/sim -seed 7 -world 42    # one world of it alone
//
// A run is made of worlds ([World]), each drawn from its seed and number (plan.go): the layout of
// the journal, how many shards, topics, groups and members there are and how they are configured,
// who writes, which faults happen. A world is a database of package dynamotest and processes around
// it (process.go) that have nothing in common but that database: each reaches it over a wire of its
// own (wire.go), on which requests are slow, lost, cut and late. Processes crash, stall, close and
// come back (trouble.go) while writers commit (writer.go), handlers are slow, fail and hang
// (handler.go), and groups are paused, after which nothing may go out (operator.go). Some events
// are poisoned: handlers fail on them until they are mended, and groups skip them, park their
// aggregates or are stopped, each by its policy (failures.go), until an operator has them go on. In
// each third world few events come, and groups project each in a transaction or have process
// managers (saga.go), which crash amid a step (manager.go). Then all is calm, a member of each
// group crashes and must be replaced in time, and everything must arrive (settle.go). In the packed
// layout, groups compare all aggregates then if clocks were wrong by hours.
//
// Each world also has one or more disruptions (disruption.go): requests of one kind are throttled
// for minutes (throttle.go), owners are suspended in the middle of what they write
// (suspension.go), operators edit several aggregates of a shard and requests from before arrive
// after that (editor.go), clocks are a day off (clock.go), old histories are imported
// (imports.go), aggregates are truncated while groups are behind, or deleted while writers go on to
// write to them (removals.go), the journal is exported in several attempts (exports.go), entries
// come late to the tail index (faults.go), and handlers of half of the aggregates fail for long
// (disruption.go), while requests to remove entries of the list of those behind arrive when there
// is a newer entry (straggler.go). Such a world ends with commits that are made while all is calm,
// to measure how soon they are handed out (prompt.go). A world with -disrupt none is as it was
// before there were disruptions.
//
// An oracle outside the database (oracle.go) sees each commit, each message that is handed out,
// each ack, each position that the database has stored, each command that arrives, and each record
// of an event that is skipped (records.go). It compares them as they happen, so that a finding has
// its time. A stored position is a promise that the events up to it do not come again, if its
// writer had the current epoch of the shard when it was stored, or once an owner of the shard has
// read it (history.go). Events that were removed may be handed out or not, and all others must be
// (removed.go). In the end the oracle compares projections with the events, archives with what was
// acknowledged before them and with the journal (archives.go), and follows each saga through all
// that it remembers (remembered.go).
//
// # Determinism
//
// A world runs as a WebAssembly program (package guest) on a machine whose clock and random numbers
// are given by its host (../cmd/sim). Go has one thread there and preempts nothing, so the seed
// decides all: which goroutine runs next, which case a select takes, the order of maps, every id,
// and all time. Time passes when everybody waits, so a pause costs nothing, and a deadline is kept
// to the nanosecond. Subscriber, journal, projection and the SDK run as they are. The same program,
// seed and number give the same [Report] and the same trace, to the byte; the host prints a digest
// of it.
//
// What this cannot find is what needs threads: data races. The tests of the packages run with the
// race detector for those.
package sim
