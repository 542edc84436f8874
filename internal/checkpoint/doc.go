// Package checkpoint stores the progress of consumer groups in DynamoDB, and which member works on
// which shard. Its table has these rows:
//
//	partition key                sort key         row
//	groups                       {group}/{topic}  registry: the groups that exist
//	{group}/{topic}              shards           membership: members, owners of shards, settings
//	{group}/{topic}-{shard}/{n}  cursor           cursor: up to where the tail is finished
//	{group}/{topic}-{shard}/{n}  position/{id}-0  position: the last acked event of an aggregate
//	{group}/{topic}-{shard}/{n}  behind/{id}      entry of the behind list
//	{group}/{topic}-{shard}/{n}  event/{id}-{n}   record of a skipped or deferred event
//
// In a partition key, n is the number of resets of the group. The key ends before it if n is 0. A
// reset changes the keys, so it rewrites no rows. In the sort key of a record, n is the number of
// the event in base 16.
//
// The behind list of a shard has an entry for each aggregate that the cursor has passed although
// not all of its events are handled, and for each parked aggregate.
//
// # Membership
//
// The members of a group share one small row, the membership. A change ([Membership.Join],
// [Membership.Take] and so on) is a pure function of the row. It is written under the condition
// that the row has not changed since it was read.
//
// A member sends heartbeats. A heartbeat changes one attribute of the member, and returns the row.
// Other members measure with their own clocks for how long the attribute has not risen, so no two
// clocks are compared. A member therefore holds its shards on a lease, which each heartbeat renews.
// The value of a heartbeat is the time of the member's clock. Only people use that time.
//
// # Fencing
//
// The epoch of a shard rises each time its owner changes. Each row of a shard contains the epoch of
// its last write, and a write with an older epoch is refused.
//
// A position that the subscriber stores only moves forward ([Store.StorePosition]), so a new owner
// takes it over by reading it. A position that a handler's transaction moves could be moved late by
// a former owner. A new owner takes it over by writing its epoch to it ([Store.Claim]). After that
// the transactions of a former owner fail. No write except a change of the membership depends on
// the membership row, because all writers would contend for it.
//
// A handler's transaction may be in progress when the term of its shard ends. An owner that stops
// fences such transactions. If it cannot, the membership holds an unfenced [Term] until an operator
// has claimed all positions that they may move ([Store.Fence]).
//
// An operator edits the rows of a shard as its owner, with an epoch of its own ([Store.Operate]).
// So it does not matter whether the former owner is alive. An operator does not delete a row that a
// former owner might write again. It overwrites the row.
//
// The positions of a group may also be in rows of a read model ([Rows]). The membership says where.
// A row is claimed by each new owner. [Store.In] returns the store of such a group.
//
// # Removal
//
// Deleting a row does not stop a late writer. So a reset leaves the earlier rows to members that
// have not noticed it yet, and only rows that no member reads any more are deleted. If a group is
// removed, the registry keeps the number of resets with which a new group of that name begins.
package checkpoint
