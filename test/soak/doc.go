// Package soak tests the guarantees of the write side with random commands and random faults:
// acknowledged events are stored, sequence numbers are 1 to n, and a load returns the state after
// all n events.
//
//	make soak                                       # a million commits
//	go run ./test/cmd/soak -seed 7 -world 42    # one world of it alone
//	go run ./test/cmd/soak -layout packed       # all worlds with one layout
//
// A run has many worlds ([World]). Each has its own database, and its seed decides everything else:
// the layout of the journal, the numbers of aggregates and writers, the repository of each writer
// (options.go), the commands (commands.go), and the faults and their frequency (faults.go). Outside
// the database, writers record the results of their calls (truth.go). At the end the tables are
// read without the library and compared with these records (inspect.go). In a third of the worlds,
// histories are truncated and aggregates deleted; their events are copied before (removal.go).
//
// # Turns
//
// In most worlds one writer runs at a time. It yields its turn before each request, after each
// reply and in the middle of transactions, and the seed decides which writer is next (turns.go). So
// the speed of the machine decides neither the interleaving of writers nor the faults. Only the
// time limits and pauses of the library use real time; they take seconds to matter. In every eighth
// world writers run freely, as goroutines do. These worlds find problems that turns cannot find,
// such as races.
//
// A world with turns repeats exactly if no call makes concurrent requests. The scheduler of Go
// decides the order of concurrent requests of one writer: of decisions over several aggregates, and
// of truncations and deletions in the packed layout. Worlds with a window of 1 or 2 have no
// decisions over several aggregates. More than half of the worlds differ in some of their commits
// from run to run, so a finding may need several tries to come again.
package soak
