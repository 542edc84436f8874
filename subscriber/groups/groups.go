package groups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// Groups are the consumer groups of a journal. It is safe for concurrent use.
type Groups struct {
	journal  eventlog.Log
	store    *checkpoint.Store
	external Positions // nil without WithPositions
}

// New returns the groups of a journal. It makes no round trip.
func New(j *journal.Journal, options ...Option) *Groups {
	g := &Groups{journal: eventlog.Of(j), store: checkpoint.New(j)}
	for _, option := range options {
		option(g)
	}
	return g
}

// Group is a consumer group's work on one topic.
type Group struct {
	Name, Topic string
	// Resets rises with every reset, and when a group that was removed begins again. See
	// subscriber.Group.
	Resets uint64
	// Start, if not zero: events that occurred before it are left out.
	Start   time.Time
	Paused  bool
	Stopped *Stopped // why it is paused, where an event that kept failing has stopped it (subscriber.Stop); else nil
	// ExternalPositions: members keep the positions in a store of their own (subscriber.Config.Positions),
	// as the last one to join has said.
	ExternalPositions bool
	Members           []Member // by number
	Shards            []Shard  // by number
}

// Stopped is the event by which a group was stopped. It is tried again after [Groups.Resume], or
// passed over by [Groups.Skip] before.
type Stopped struct {
	Aggregate aggregate.ID
	Number    uint64
	EventType string // empty where the event could not be read, or a foreign program wrote it
	At        time.Time
	Reason    string // the first KB
}

// Member is one subscription of the group, or an operator: an edit of package groups that is under
// way. A member that crashed stays in the list until another member has missed its heartbeats for
// subscriber.Config.LeaseDuration. Without other members it stays until one joins. Dead marks it.
type Member struct {
	Number   uint64 // none is given twice
	Name     string // subscriber.Config.MemberName, by default host name and process id; empty for an operator
	Beat     uint64 // rises while the member lives
	Operator bool
	// LastBeat is the time of its last heartbeat by its own clock (journal.Config.Now), up to an
	// eighth of Lease too early. Lease is how long it keeps its shards after it
	// (subscriber.Config.LeaseDuration).
	LastBeat time.Time
	Lease    time.Duration
	// Dead: when the group was read, LastBeat was longer ago than Lease, by the clock of the reader
	// (journal.Config.Now). Members do not rely on clocks of others: they take over the shards of a
	// member whose heartbeats they miss.
	Dead bool
}

func memberOf(number uint64, m checkpoint.Member, now time.Time) Member {
	last := m.LastHeartbeat()
	return Member{
		Number: number, Name: m.Name, Beat: m.Heartbeat, Operator: m.Operator, LastBeat: last, Lease: m.Lease,
		Dead: m.Lease > 0 && now.Sub(last) > m.Lease+m.Lease/8,
	}
}

// Shard is a logical shard as the group shares it out.
type Shard struct {
	Number int
	Owner  uint64 // the number of a member; 0 while it is free
	Epoch  uint64 // rises each time it changes hands
}

// Free returns the shards that nobody owns.
func (g Group) Free() []Shard {
	return slices.DeleteFunc(slices.Clone(g.Shards), func(s Shard) bool { return s.Owner != 0 })
}

// List returns all groups, in the order of names and topics: one read unit for some 40 of them, and
// one round trip for each. A group that cannot be read does not hide the others: they come beside
// the error.
//
// Errors: [ErrCorrupt], journal.ErrTableMissing, journal.ErrThrottled, journal.ErrAccess, the
// context's.
func (g *Groups) List(ctx context.Context) ([]Group, error) {
	keys, err := g.store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list consumer groups: %w", err)
	}
	var all []Group
	var errs []error
	for _, k := range keys {
		now := g.journal.Config().Now()
		roster, err := g.store.ReadMembership(ctx, k)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("list consumer groups: %w", err))
		case roster.Exists(): // it may have been removed meanwhile
			all = append(all, groupOf(k, roster, now))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return all, errors.Join(errs...)
}

// Get reads a group, strongly consistent: one round trip.
//
// Errors: [ErrNoGroup] and those of List.
func (g *Groups) Get(ctx context.Context, group, topic string) (Group, error) {
	k := checkpoint.Key{Group: group, Topic: topic}
	now := g.journal.Config().Now()
	roster, err := g.roster(ctx, k)
	if err != nil {
		return Group{}, failed("read", k, err)
	}
	return groupOf(k, roster, now), nil
}

func (g *Groups) roster(ctx context.Context, k checkpoint.Key) (checkpoint.Membership, error) {
	roster, err := g.store.ReadMembership(ctx, k)
	if err == nil && !roster.Exists() {
		err = ErrNoGroup
	}
	return roster, err
}

func groupOf(k checkpoint.Key, r checkpoint.Membership, now time.Time) Group {
	group := Group{Name: k.Group, Topic: k.Topic, Resets: r.Resets, Start: r.Start, Paused: r.Paused, ExternalPositions: r.ExternalPositions}
	if why := r.Stopped; why != nil {
		stopped := Stopped(*why)
		group.Stopped = &stopped
	}
	for _, number := range slices.Sorted(maps.Keys(r.Members)) {
		m := r.Members[number]
		group.Members = append(group.Members, memberOf(number, m, now))
	}
	for number, owner := range r.Owners {
		if _, lives := r.Members[owner]; !lives {
			owner = 0
		}
		group.Shards = append(group.Shards, Shard{Number: number, Owner: owner, Epoch: r.Epochs[number]})
	}
	return group
}

func shardOf(k checkpoint.Key, r checkpoint.Membership, number int) checkpoint.Shard {
	return checkpoint.Shard{Group: checkpoint.Group{Name: k.Group, Resets: r.Resets}, Topic: k.Topic, Number: number}
}

// failed says what was to be done with which group.
func failed(what string, k checkpoint.Key, err error) error {
	return fmt.Errorf("%s consumer group %q on topic %q: %w", what, k.Group, k.Topic, err)
}
