// Package checkpoint keeps in DynamoDB how far consumer groups have got. Its
// table has these rows, of which each carries the epoch of the lease under which
// it was written last:
//
//	{group}/{topic}          lease            who of the group tails the topic
//	{group}/{topic}-{shard}  cursor           up to where the shard's tail is done with
//	{group}/{topic}-{shard}  position/{id}    the last acked event of an aggregate
//	{group}/{topic}-{shard}  behind/{id}      an aggregate that the cursor has passed unfinished
//
// Fencing: a row is written only under an epoch that is not older than the row's.
// A member takes over a row by stamping its own, newer epoch on it when it reads
// it, so that a former owner who does not know yet can not move it any more.
// Nothing is conditional on the lease row itself: all writers would contend for it.
package checkpoint
