package repository

import "github.com/millrace-dev/millrace/aggregate"

// SnapshotPolicy chooses the commits that store the state. It must be safe for concurrent use. [Every],
// [Never] and [SnapshotPolicyFunc] are policies.
type SnapshotPolicy interface {
	// Due tells whether a commit stores the state as it is after its last event. The first commit of an
	// aggregate does so without being asked.
	Due(SnapshotPoint) bool
}

// SnapshotPoint is a commit that is about to be written.
type SnapshotPoint struct {
	Aggregate aggregate.ID
	// Before and After are the versions that the commit leads from and to. After-Before events are in it.
	Before, After uint64
	// EventTypes are the types of its events, in their order.
	EventTypes []string
}

// Every stores a snapshot about every n events: with each commit that reaches or crosses a multiple of n. A load then
// replays less than n events plus those of one commit.
func Every(n uint) SnapshotPolicy { return every(n) }

type every uint

func (n every) Due(p SnapshotPoint) bool {
	return n > 0 && p.Before/uint64(n) != p.After/uint64(n) // New refuses Every(0), unless it is inside another policy
}

// Never stores no snapshots, and loads replay all events, whatever snapshots there are. The state still goes into the
// head with the first commit of an aggregate, as the schema of the tables wants.
var Never SnapshotPolicy = never{}

type never struct{}

func (never) Due(SnapshotPoint) bool { return false }

// SnapshotPolicyFunc is a function as a [SnapshotPolicy]: one that stores a snapshot when an order is closed,
// for example.
type SnapshotPolicyFunc func(SnapshotPoint) bool

// Due calls the function.
func (f SnapshotPolicyFunc) Due(p SnapshotPoint) bool { return f(p) }
