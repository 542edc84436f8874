// Package soak shows by random commands, random faults and a memory of its own that the write side
// keeps its promises: what was acknowledged is there, numbers are 1..n, and a load returns the
// state after all n events.
//
//	make soak                                       # a million commits
//	go run ./test/cmd/soak -seed 7 -world 42    # one world of it alone
//	go run ./test/cmd/soak -layout packed       # all worlds with one layout
//
// A run is made of worlds ([World]), each with a database of its own and everything drawn from its
// seed: the layout of the journal, how many aggregates there are, how many writers, what each
// writer's repository is like (options.go), what they do (commands.go), which faults happen and how
// often (faults.go). Writers remember outside the database what they were told (truth.go); at the
// end the tables are read without the library and compared with that (inspect.go). In a third of
// the worlds histories are truncated and things deleted; their events are copied before
// (removal.go).
//
// # Turns
//
// In most worlds one writer runs at a time. It gives up its turn before each request, after each
// reply and in the middle of transactions, and the seed says who is next (turns.go). So a seed
// yields the same interleaving, the same faults and the same end each time, whatever the machine
// does; the only things that it does not decide are budgets and pauses of the library in real time,
// which take seconds to matter. In every eighth world writers run freely, as goroutines do; these
// find what turns cannot, such as races, and may need several tries to fail again. The same holds
// for truncations and deletions in the packed layout, which change several items side by side.
package soak
