// Package checkpoint stores in DynamoDB how far consumer groups have got, and which member works on
// which shard. Its table has these rows:
//
//	groups                              {group}/{topic}   the registry: which groups there are
//	{group}/{topic}                     membership            members, owners of the shards, what applies to all of the group
//	{group}/{topic}-{shard}/{n}         cursor            up to where the shard's tail is done with
//	{group}/{topic}-{shard}/{n}         position/{id}-0   the last acked event of an aggregate
//	{group}/{topic}-{shard}/{n}         behind/{id}       an aggregate that the cursor has passed unfinished, or that is parked
//	{group}/{topic}-{shard}/{n}         event/{id}-{n}    an event that was skipped, with its number in base 16
//
// n is how often the group was reset; it is left out of the keys while it is 0. So a reset need not
// rewrite rows: it changes the keys.
//
// # The membership
//
// Everything that members of a group have to agree on is one small row. A change ([Membership.Join],
// [Membership.Take] and so on) is a pure function of the row, written under the condition that nobody
// has changed it since it was read. A member shows that it lives by a beat, which changes nothing
// else, and returns the row. Others judge by their own clock for how long a beat has not risen: no
// two clocks are compared. So a member has its shards on a lease, which each beat renews. A beat is
// the time by the member's clock, but only for people who look at the group.
//
// # Fencing
//
// Each time a shard changes hands its epoch rises. All rows of a shard carry the epoch under which
// they were written last, and are written only under one that is not older. Positions of a
// subscriber's own move forward only ([Store.StorePosition]), so an owner takes one over by reading
// it. One that a transaction moves, which could be done late, is taken over by stamping the new
// epoch on it ([Store.Claim]): a former owner cannot move it any more. Nothing is conditional on
// the membership itself: all writers would contend for it.
//
// A transaction of a handler may be on its way when the term of its shard ends. An owner that comes
// to rest shuts such transactions out. Where that is not known the membership holds an unfenced
// [Term], until an operator has claimed all positions that they may move ([Store.Fence]).
//
// An operator that edits rows does so as an owner, for a moment, with an epoch of its own
// ([Store.Operate]): it makes no difference whether the owner before it is alive. It never deletes
// a row that a former owner might write again, but writes it again.
//
// # Removal
//
// Deleting a row does not stop a late writer. So a reset leaves the earlier rows to members that
// have not noticed it yet, and only rows that nobody reads any more are deleted. Of a group that
// was removed the registry keeps the n with which a group of that name would begin.
package checkpoint
