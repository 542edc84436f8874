package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// groupRow is a consumer group on a topic.
type groupRow struct {
	Group   string `json:"group"`
	Topic   string `json:"topic"`
	State   string `json:"state"` // such as "active", see stateOf
	Members int    `json:"member_count"`
	Lost    int    `json:"members_lost"`
	Shards  int    `json:"shard_count"`
	Owned   int    `json:"shards_owned"`

	Stopped *failureView `json:"stopped"`
	Lag     *lagView     `json:"lag"` // nil if it was not read, or cannot be read here
	// Blocked and Parked are numbers of aggregates. Slow is the number of the blocked ones whose
	// event has not failed. Skipped is a number of events. BehindMore and SkippedMore report that
	// there are more than were counted.
	Blocked     int  `json:"blocked"`
	Slow        int  `json:"slow"`
	Parked      int  `json:"parked"`
	BehindMore  bool `json:"behind_more"`
	Skipped     int  `json:"skipped"`
	SkippedMore bool `json:"skipped_more"`
	// EventsPerSecond is the rate of handled events; nil if it is not known.
	EventsPerSecond *float64 `json:"events_per_second"`
	// ExternalPositions reports that the positions are in a store that the console cannot read.
	ExternalPositions bool `json:"external_positions"`
	Read              bool `json:"read"`     // false if it was left out, or could not be read
	LeftOut           bool `json:"left_out"` // the page had reached its limit of read units before

	shardLags []groups.ShardLag
}

// lagView is the lag of a group, or of one of its shards.
type lagView struct {
	Events     uint64  `json:"events"`
	Aggregates int     `json:"aggregates"`
	AtLeast    bool    `json:"at_least"` // there may be more events or older events
	Seconds    float64 `json:"seconds"`  // age of the oldest event
}

func lagOf(l groups.Lag, now time.Time) lagView {
	return lagView{Events: l.Events, Aggregates: l.Aggregates, AtLeast: l.AtLeast, Seconds: l.Age(now).Seconds()}
}

// failureView is an event that a group could not handle.
type failureView struct {
	eventRef
	Reason string `json:"reason"`
}

// mostCounted is the maximum number of skipped events of a group that are counted.
const mostCounted = 20

func stateOf(g groups.Status) (state string, lost int) {
	for _, m := range g.Members {
		if m.Dead {
			lost++
		}
	}
	switch {
	case g.Stopped != nil:
		state = "stopped"
	case g.Paused:
		state = "paused"
	case !g.LastBurst.IsZero():
		return "in bursts", 0 // the next burst removes one that was killed
	case len(g.Members) == 0:
		state = "no members"
	case lost == len(g.Members):
		state = "members lost"
	default:
		state = "active"
	}
	return state, lost
}

// listGroups lists the groups, and returns texts about groups that it could not read. It returns an
// error if it could read none.
func (r *reading) listGroups(ctx context.Context) (all []groups.Status, failed []string, err error) {
	all, err = r.config.Groups.List(ctx)
	if err == nil || ctx.Err() != nil || len(all) == 0 && !errors.Is(err, groups.ErrCorrupt) {
		return all, []string{}, err
	}
	return all, []string{err.Error()}, nil
}

// groupRows reads the lags of groups. topics has the rates at which events are written. If some
// groups cannot be read, it returns the others, and the errors in failed.
func (r *reading) groupRows(ctx context.Context, all []groups.Status, topics []topicRow) (rows []groupRow, failed []string, err error) {
	rows, errs := make([]groupRow, len(all)), make([]error, len(all))
	var reads errgroup.Group
	reads.SetLimit(readsAtOnce)
	for i, g := range all {
		var written *writing
		if at := slices.IndexFunc(topics, func(t topicRow) bool { return t.Topic == g.Topic }); at >= 0 {
			written = topics[at].written
		}
		reads.Go(func() (err error) {
			reading, cancel := context.WithTimeout(r.limited(ctx), rowPatience)
			defer cancel()
			if rows[i], err = r.groupRow(reading, g, written); err != nil {
				rows[i].Read = false
				errs[i] = fmt.Errorf("group %s on %s: %w", g.Name, g.Topic, err)
			}
			return ctx.Err()
		})
	}
	err = reads.Wait()
	failed, allErr := failures(errs)
	return rows, failed, cmp.Or(err, allErr)
}

// failures returns the texts of the errors, and an error if no read has succeeded.
func failures(errs []error) (failed []string, err error) {
	failed = []string{}
	for _, e := range errs {
		if e != nil {
			failed, err = append(failed, e.Error()), e
		}
	}
	if len(failed) < len(errs) {
		err = nil
	}
	return failed, err
}

// groupRow reads the lag of a group and counts its skipped events, as far as the read units of ctx
// allow.
func (r *reading) groupRow(ctx context.Context, g groups.Status, written *writing) (groupRow, error) {
	state, lost := stateOf(g)
	row := groupRow{
		Group: g.Name, Topic: g.Topic, State: state, Lost: lost, Members: len(g.Members), Shards: len(g.Shards), Owned: len(g.Shards) - len(g.Free()),
	}
	if s := g.Stopped; s != nil {
		row.Stopped = &failureView{eventRef{refOf(s.Aggregate), s.Number, s.EventType, shownTime(s.At)}, s.Reason}
	}
	group := r.config.Groups.Of(g.Name, g.Topic)
	lag, err := group.Estimate(ctx)
	switch {
	case errors.Is(err, journal.ErrUnitLimit):
		row.LeftOut = true
		return row, nil
	case errors.Is(err, groups.ErrExternalPositions):
		row.ExternalPositions = true
		err = countBehind(ctx, group, &row)
	case err == nil:
		view := lagOf(lag.Lag, r.now)
		row.Lag, row.shardLags = &view, lag.Shards
		row.Blocked, row.Slow, row.Parked = lag.Blocked, lag.Slow, lag.Parked
		row.BehindMore = slices.ContainsFunc(lag.Shards, func(s groups.ShardLag) bool { return s.AtLeast && s.Blocked+s.Parked >= listedOfShard })
		now := lagAt{r.now, lag.Events, !lag.AtLeast}
		row.EventsPerSecond = r.rates.handled(rateKey{g.Name, g.Topic, allShards}, now, written)
	}
	if err == nil {
		err = countSkipped(ctx, group, &row)
	}
	if errors.Is(err, journal.ErrUnitLimit) {
		row.LeftOut = true
		return row, nil
	}
	row.Read = err == nil
	return row, err
}

// listedOfShard is the maximum number of blocked and parked aggregates of a shard that
// groups.Group.Estimate counts.
const listedOfShard = 400

// countBehind counts the blocked and parked aggregates of a group whose lag cannot be read.
func countBehind(ctx context.Context, group *groups.Group, row *groupRow) error {
	for b, err := range group.Behind(ctx, aggregate.ID{}) {
		if err != nil {
			return err
		}
		if row.Blocked+row.Parked == mostCounted {
			row.BehindMore = true
			return nil
		}
		switch {
		case b.Parked != nil:
			row.Parked++
		default:
			row.Blocked++
			if b.Failure == nil {
				row.Slow++
			}
		}
	}
	return nil
}

func countSkipped(ctx context.Context, group *groups.Group, row *groupRow) error {
	for _, err := range group.Skipped(ctx, aggregate.ID{}, 0) {
		if err != nil {
			return err
		}
		if row.Skipped == mostCounted {
			row.SkippedMore = true
			return nil
		}
		row.Skipped++
	}
	return nil
}

// Failing returns the number of aggregates that are blocked by an event that has failed.
func (row groupRow) Failing() int { return row.Blocked - row.Slow }

// behindAfter is the minimum age of the oldest event for which the lag of a group is a concern.
const behindAfter = time.Minute

// concerns returns the problems of the group that need attention.
func (row groupRow) concerns() []concern {
	var all []concern
	add := func(kind, page, format string, a ...any) {
		all = append(all, concern{
			Kind: kind, Group: row.Group, Topic: row.Topic, Link: link(page, "name", row.Group, "topic", row.Topic),
			Text: fmt.Sprintf("%s on %s: %s", row.Group, row.Topic, fmt.Sprintf(format, a...)),
		})
	}
	switch s := row.Stopped; {
	case s != nil:
		add("stopped", "group", "event %d of %s %s has stopped the group: %s", s.Number, s.Type, s.ID, oneLine([]byte(s.Reason)))
	case row.State == "paused":
		add("paused", "group", "paused by an operator")
	case row.State == "no members":
		add("no_members", "group", "no member handles its events")
	}
	if row.Stopped == nil && row.State != "paused" { // else no event is tried
		if failing := row.Failing(); failing > 0 {
			add("blocked", "behind", "%s blocked by an event that has failed and is tried again", orMore(failing, row.BehindMore, "aggregate is", "aggregates are"))
		}
		if row.Slow > 0 {
			add("slow", "behind", "%s for a handler that takes long: no attempt has failed", orMore(row.Slow, row.BehindMore, "aggregate waits", "aggregates wait"))
		}
	}
	if row.Parked > 0 {
		add("parked", "behind", "%s parked until an operator decides", orMore(row.Parked, row.BehindMore, "aggregate is", "aggregates are"))
	}
	if row.Lost > 0 {
		add("member_lost", "group", "%s no heartbeat for longer than its lease", plural(row.Lost, "member has sent", "members have sent"))
	}
	if l := row.Lag; l != nil && len(all) == 0 && l.Seconds > behindAfter.Seconds() {
		add("behind", "group", "%s not handled, and the oldest event has been waiting for %s", orMore(l.Events, l.AtLeast, "event", "events"), span(l.Seconds))
	}
	if row.Skipped > 0 {
		add("skipped", "skipped", "%s skipped and had no effect", orMore(row.Skipped, row.SkippedMore, "event was", "events were"))
	}
	return all
}

// groupsView is the page of all groups.
type groupsView struct {
	Groups []groupRow `json:"groups"`
	// LeftOut reports that the lag of some groups was not read.
	LeftOut bool `json:"left_out"`
	// Failed holds the errors of parts that could not be read.
	Failed []string `json:"failed"`
}

func (groupsView) title() string { return "Consumer groups" }

func (r *reading) groups(ctx context.Context) (any, error) {
	all, failed, err := r.listGroups(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, g := range all {
		names = append(names, g.Topic)
	}
	slices.Sort(names)
	topics, failedTopics, err := r.topicRows(ctx, slices.Compact(names), all)
	if err != nil {
		return nil, err
	}
	rows, failedRows, err := r.groupRows(ctx, all, topics)
	if err != nil {
		return nil, err
	}
	v := groupsView{Groups: append([]groupRow{}, rows...), Failed: slices.Concat(failed, failedTopics, failedRows)}
	for _, row := range rows {
		v.LeftOut = v.LeftOut || row.LeftOut
	}
	return v, nil
}
