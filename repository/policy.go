package repository

import "reflect"

// SnapshotPolicy reports whether a commit stores the state as it is after its last event. The first
// commit of an aggregate always does, and the policy is not asked. A policy must be safe for
// concurrent use. [Every] and [Never] are policies; an application can write its own, such as one
// that stores a snapshot when an order is closed.
type SnapshotPolicy func(Commit) bool

// Every returns a policy that stores a snapshot with each commit that reaches or crosses a multiple
// of n. A load then replays fewer than n events plus those of one commit. Every(0) is [Never].
func Every(n uint) SnapshotPolicy {
	if n == 0 {
		return Never
	}
	return func(c Commit) bool { return c.Before/uint64(n) != c.After/uint64(n) }
}

// Never stores no snapshots. A repository with this policy also ignores the snapshots that exist,
// and its loads replay all events. The first commit of an aggregate still stores the state, because
// the schema of the tables requires one.
func Never(Commit) bool { return false }

// isNever compares code pointers: another function with the same code would be as good.
func isNever(p SnapshotPolicy) bool {
	return reflect.ValueOf(p).Pointer() == reflect.ValueOf(Never).Pointer()
}
