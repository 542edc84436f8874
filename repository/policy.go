package repository

// SnapshotPolicy reports whether a commit stores the state after its last event. In the layout
// journal.Classic the first commit of an aggregate always stores it, without a call of the policy.
// A policy must be safe for concurrent use. [Every] and [Never] are policies; an application can
// write its own, such as one that stores a snapshot when an order is closed.
type SnapshotPolicy func(Commit) bool

// Every returns a policy that stores a snapshot with each commit that reaches or crosses a multiple
// of n. A load then replays fewer than n events plus those of one commit. Every(0) is [Never].
func Every(n uint) SnapshotPolicy {
	if n == 0 {
		return Never
	}
	return func(c Commit) bool { return c.Before/uint64(n) != c.After/uint64(n) }
}

// Never is a policy that stores no snapshots. Loads still use the snapshots that exist; see
// [Config.IgnoreSnapshots]. Two kinds of commits store the state with any policy. One is a commit
// that replaces a snapshot which this program cannot use, see [Config.SnapshotSchema]. The other,
// in the layout journal.Classic, is the first commit of an aggregate, because the schema of the
// tables requires it.
func Never(Commit) bool { return false }
