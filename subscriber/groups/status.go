package groups

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// Status is the state of the consumer group of that Name on one Topic, as it was read.
type Status struct {
	Name, Topic string
	// Resets is the number of resets. It also rises when a group that was removed begins again. See
	// subscriber.GroupKey.
	Resets uint64
	// Start is the time at which the group begins: it does not handle events that occurred before.
	// The zero time is the beginning.
	Start time.Time
	// Paused reports that the group delivers no messages.
	Paused bool
	// OldRowsUntil is until when rows from before the last reset stay, at least, see [FenceTime].
	// It is zero if there are none.
	OldRowsUntil time.Time
	// Stopped is the failed event that has paused the group (subscriber.Stop). It is nil if the
	// group is not paused, or if an operator has paused it.
	Stopped *Stopped
	// ExternalPositions reports that members store the positions outside of the checkpoint table
	// (subscriber.Config.Positions). The member that joined last has set it.
	ExternalPositions bool
	// RowTable is the table of the read model whose rows are the positions (projection.Rows). It is
	// empty for other groups.
	RowTable string
	// NoReplay reports that a replay needs a confirmation (subscriber.Config.NoReplay). The member
	// that joined last has set it.
	NoReplay bool
	// LastBurst is the end of the last burst that took shards of the group (subscriber.Burst). It
	// is zero if there was none, or if a long-running member has joined since. If it is not zero,
	// the group works in bursts and needs no members.
	LastBurst time.Time
	Members   []Member // by number
	Shards    []Shard  // by number
}

// Stopped is a failed event that has stopped a group. The group tries it again after
// [Group.Resume]. To skip it, call [Groups.Skip] before.
type Stopped struct {
	Aggregate aggregate.ID // the aggregate of the event that stopped the group
	Number    uint64       // the sequence number of the event
	EventType string       // empty if the event could not be read, or if a foreign program wrote it
	At        time.Time    // the time of the stop
	Reason    string       // limit: 1 KB
}

// Member is one subscription of the group, or an operator. An operator is an edit of this package
// that holds a shard for a moment. A member that crashed stays in the list until another member has
// missed its heartbeats for subscriber.Timing.LeaseDuration. If there is no other member, it stays
// until one joins.
type Member struct {
	Number uint64 // unique in the group
	// Name is subscriber.Config.MemberName, by default host name and process id. It is empty for an
	// operator.
	Name     string
	Operator bool // whether it is an operator, which owns a shard for an edit only
	// LastHeartbeat is the time of the last heartbeat by the member's clock (journal.Config.Now).
	// It may be up to an eighth of Lease too early.
	LastHeartbeat time.Time
	// Lease is the time for which the member keeps its shards after a heartbeat
	// (subscriber.Timing.LeaseDuration).
	Lease time.Duration
	// Until is the end of the lease of a burst, which sends no heartbeats. It is zero for other
	// members.
	Until time.Time
	// Dead reports, by the clock of the reader (journal.Config.Now), that the last heartbeat is
	// older than nine eighths of Lease. For a burst it reports that Until was more than 2 seconds
	// ago. Members do not compare clocks: they take over the shards of a member when they have
	// missed its heartbeats for the time of a lease.
	Dead bool
}

func memberOf(number uint64, m checkpoint.Member, now time.Time) Member {
	last := m.LastHeartbeat()
	return Member{
		Number: number, Name: m.Name, Operator: m.Operator, LastHeartbeat: last, Lease: m.Lease, Until: m.Until,
		Dead: m.HasLeft(now) || m.Until.IsZero() && m.Lease > 0 && now.Sub(last) > m.Lease+m.Lease/8,
	}
}

// Shard is a logical shard of the topic, and its owner in the group.
type Shard struct {
	Number int    // the number of the shard, from 0
	Owner  uint64 // number of the member that owns the shard; 0 if it is free
	Epoch  uint64 // rises each time that the owner changes
}

// Free returns the shards without an owner.
func (s Status) Free() []Shard {
	return slices.DeleteFunc(slices.Clone(s.Shards), func(s Shard) bool { return s.Owner != 0 })
}

// NextDue returns the time at which the first failed or deferred event is due again. It is zero if
// there is none. A group that works in bursts handles the event in the first sweep after this time.
// The call costs half a read unit for each shard, with eventual consistency.
//
// Errors: [ErrNoGroup] and those of [Groups.List].
func (g *Group) NextDue(ctx context.Context) (due time.Time, err error) {
	membership, err := g.membership(ctx)
	if err != nil {
		return due, g.failed("read", err)
	}
	shards := make([]int, len(membership.Owners))
	for n := range shards {
		shards[n] = n
	}
	cursors, err := g.store.Cursors(ctx, checkpoint.Group{Name: g.Name(), Resets: membership.Resets}, g.Topic(), shards)
	if err != nil {
		return due, g.failed("read", err)
	}
	for _, c := range cursors {
		if !c.Due.IsZero() && !c.Due.Equal(checkpoint.Never) && (due.IsZero() || c.Due.Before(due)) {
			due = c.Due
		}
	}
	return due, nil
}

func statusOf(k checkpoint.Key, r checkpoint.Membership, now time.Time) Status {
	status := Status{Name: k.Group, Topic: k.Topic, Resets: r.Resets, Start: r.Start, Paused: r.Paused, OldRowsUntil: r.Ended.Until(), ExternalPositions: r.ExternalPositions, NoReplay: r.NoReplay, LastBurst: r.Burst}
	if r.Rows != nil {
		status.RowTable = r.Rows.Table
	}
	if why := r.Stopped; why != nil {
		stopped := Stopped(*why)
		status.Stopped = &stopped
	}
	for _, number := range slices.Sorted(maps.Keys(r.Members)) {
		m := r.Members[number]
		status.Members = append(status.Members, memberOf(number, m, now))
	}
	for number, owner := range r.Owners {
		if _, lives := r.Members[owner]; !lives {
			owner = 0
		}
		status.Shards = append(status.Shards, Shard{Number: number, Owner: owner, Epoch: r.Epochs[number]})
	}
	return status
}
