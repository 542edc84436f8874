// Package chaos shows on DynamoDB Local, with real processes that are killed at random, that the
// read side keeps its promises: nothing is lost, nothing comes out of order, and the effects of a
// transactional projection happen once.
//
//	make chaos                       # three minutes
//	make chaos CHAOS_MINUTES=30 CHAOS_SEED=7    # even seeds have the packed layout
//
// [Run] is the parent: it commits random events to random aggregates from several goroutines
// (writers.go), and starts consumer processes of two groups, which are the same program in another
// role ([MemberMain]). It kills them with SIGKILL at random moments, freezes them for longer than
// their lease so that they come back as zombies, closes some with SIGTERM, and lets others join and
// leave (keeper.go). When the writers have stopped it waits until all is done, and then compares
// what the members noted and wrote with what the journal has (check_*.go). What happens and when is
// drawn from the seed; what it meets is up to the machine, so a seed that failed may need several
// tries to fail again.
//
// # What the members leave behind
//
// Handlers nack at random, some events for many seconds, so that there are aggregates behind at
// most times. Some transactions of projections are held up on their way (member.go) and arrive
// when their member has been frozen and replaced.
//
// Each group has one log (log.go), to which its members and the parent append lines with single
// writes. The kernel puts these in one order, which is that of real time: if a line was written
// before something happened, then it stands before every line that was written after. That makes
// the rules below exact without a clock. A killed process loses nothing that it wrote; only the
// machine would.
//
// Members of the group "plain" write a line when a message comes, and one before they ack or nack
// it. Those of the group "projection" append each event to a list in a row of its aggregate and add
// its amount to a counter shared by many aggregates, in the transaction of the projection, without
// any condition: what is applied twice, out of order or in part stays visible.
//
// # What is checked
//
// Each event reaches each group, and per aggregate never out of order; after its position is
// stored, never again.
//
//  1. Nothing is lost: every event in the journal was acked in the group "plain", with the content
//     that was written. Every commit that was acknowledged is in the journal.
//  2. No event is skipped: event n+1 of an aggregate comes, to whichever member, only after a line
//     that acks n. This holds for zombies too: whoever delivers n+1 has had the ack of n, or a
//     position that somebody stored after it.
//  3. No event comes again without a reason. Acked events may come again if their position was not
//     stored; so the member that acked must have been killed or have lost its lease not long after
//     (lossWindow). And a zombie may still handle what it had. An event whose effects were
//     committed has its position stored, so only a zombie can get it again.
//  4. No event is with two members at a time, unless the first of them was killed or lost its
//     lease.
//  5. Effects are there once: the list of each aggregate is the history of the aggregate, and the
//     counters are its sums.
//  6. A member that gets SIGTERM ends by itself, within a minute, and without an error; none ends
//     otherwise.
//
// Whoever is frozen, or so slow that it may have lost its lease without being frozen, is in
// trouble: members note it when they were not scheduled for a quarter of the lease, or when a
// request takes that long. Rules 3 and 4 ask nothing of those moments.
package chaos
