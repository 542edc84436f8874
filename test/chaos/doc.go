// Package chaos tests the guarantees of the read side on DynamoDB Local, with real processes that
// are killed at random: no event is lost, events are not delivered out of order, and the effects of
// a transactional projection happen once.
//
//	make chaos                       # three minutes
//	make chaos CHAOS_MINUTES=30 CHAOS_SEED=7    # even seeds have the packed layout
//
// [Run] is the parent. It commits random events to random aggregates from several goroutines
// (writers.go), and starts consumer processes of two groups, which are the same program in another
// role ([MemberMain]). It kills some of them with SIGKILL at random moments, and closes some with
// SIGTERM. It freezes some for longer than their lease, so that they continue as zombies: members
// that do not know yet that they have lost their shards. It lets other members join and leave
// (keeper.go). When the writers have stopped, it waits until all events are consumed. Then it
// compares the records and writes of the members with the journal (check_*.go). The seed decides
// what happens and when. The machine decides the exact state in which it happens, so a seed that
// failed may need several tries to fail again.
//
// # Records of the members
//
// Handlers nack at random, and some events for many seconds, so that there are usually aggregates
// that are behind. Some transactions of projections are delayed on their way (member.go) and arrive
// when their member has been frozen and replaced.
//
// Each group has one log (log.go), to which its members and the parent append lines with single
// writes. The kernel puts the lines in one order, which is the order of real time: a line that was
// written before an event stands before every line that was written after it. That makes the rules
// below exact without a clock. A killed process loses no line that it wrote.
//
// Members of the group "plain" write a line when a message arrives, and one before they ack or nack
// it. Those of the group "projection" append each event to a list in a row of its aggregate and add
// its amount to a counter that many aggregates share. They do that in the transaction of the
// projection, without any condition: an effect that is applied twice, out of order or in part stays
// visible.
//
// # Checks
//
// Each event reaches each group, the events of an aggregate never out of order. After its position
// is stored, an event is not delivered again.
//
// 1. Nothing is lost: every event in the journal was acked in the group "plain", with the content
// that was written. Every commit that was acknowledged is in the journal.
// 2. No event is skipped: event n+1 of an aggregate is delivered, to any member, only after a line
// that acks n. This holds for zombies too: a member that delivers n+1 has received the ack of n, or
// has read a position that a member stored after it.
// 3. No event is delivered again without a reason. Acked events may be delivered again if their
// position was not stored. So the member that acked must have been killed or have lost its lease
// not long after (lossWindow). And a zombie may still handle messages that it had received. An
// event whose effects were committed has its position stored, so only a zombie can receive it
// again.
// 4. Two members never handle the same event at a time, unless the first of them was killed or lost
// its lease.
// 5. Effects happen once: the list of each aggregate is the history of the aggregate, and the
// counters are its sums.
// 6. A member that receives SIGTERM ends by itself, within a minute and without an error. Other
// members do not end by themselves.
//
// A member is in trouble if it is frozen, or so slow that it may have lost its lease. Members
// record that when they were not scheduled for a quarter of the lease, or when a request takes that
// long. Rules 3 and 4 do not apply to those times.
package chaos
