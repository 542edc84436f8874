// Package packed is the layout journal.Packed. A commit is one item. All items of an aggregate are
// in one partition of the journal table, under numbers:
//
//	1 or more a commit, under the number of its first event; the tombstone is under the number
//	          after the last event
//	negative  a command whose id has been dropped from commits and snapshots
//
// The items of commits are never removed. So all writers compete for the item under the number
// after the last event. A writer that knows the number of the last event needs only one condition:
// that there is no such item. Commands without events are stored there in a placeholder, and the
// next commit replaces it. That commit takes the commands over, so every writer learns of them.
//
// In the snapshot table, the same partition holds the latest snapshot under 0 and the one that
// stands for truncated events under -1. Redundant snapshots are under their numbers.
package packed
