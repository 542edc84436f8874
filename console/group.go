package console

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// groupView is the page of a consumer group on a topic.
type groupView struct {
	groupRow
	Resets uint64     `json:"resets"` // number of resets
	Start  *time.Time `json:"start"`  // nil: the beginning
	// LastBurst and NextDue are those of a group that works in bursts; nil if they are not known.
	LastBurst *time.Time `json:"last_burst"`
	NextDue   *time.Time `json:"next_due"`

	Workers []memberView `json:"members"`
	Parts   []shardView  `json:"shards"`
}

func (v groupView) title() string { return "Group " + v.Group + " on " + v.Topic }

// memberView is a member of a group: one subscription of a process.
type memberView struct {
	Number        uint64     `json:"number"`
	Name          string     `json:"name"` // by default host name and process id
	Operator      bool       `json:"operator"`
	Lost          bool       `json:"lost"`
	LastHeartbeat *time.Time `json:"last_heartbeat"`
	Lease         float64    `json:"lease_seconds"`
	Shards        []int      `json:"shards"`
}

// shardView is a shard of a group.
type shardView struct {
	Shard     int      `json:"shard"`
	Owner     uint64   `json:"owner"` // number of a member; 0 if the shard is free
	OwnerName string   `json:"owner_name"`
	OwnerLost bool     `json:"owner_lost"`
	Epoch     uint64   `json:"epoch"`
	Lag       *lagView `json:"lag"`
	// Written and Handled are rates in events per second; nil if they are not known.
	Written *float64 `json:"written_per_second"`
	Handled *float64 `json:"handled_per_second"`
}

// named returns the parameters name and topic.
func (r *reading) named() (group, topic string, err error) {
	if group, err = r.need("name"); err == nil {
		topic, err = r.need("topic")
	}
	return group, topic, err
}

func (r *reading) group(ctx context.Context) (any, error) {
	name, topic, err := r.named()
	if err != nil {
		return nil, err
	}
	g, err := r.config.Groups.Of(name, topic).Status(ctx)
	if err != nil {
		return nil, err
	}
	written, _, err := r.topicRow(ctx, topic, nil)
	if err != nil {
		return nil, err
	}
	row, err := r.groupRow(ctx, g, written.written)
	if err != nil {
		return nil, err
	}
	v := groupView{groupRow: row, Resets: g.Resets, Start: optionalTime(g.Start), Workers: []memberView{}, Parts: []shardView{}}
	if !g.LastBurst.IsZero() {
		due, err := r.config.Groups.Of(name, topic).NextDue(ctx)
		if err != nil {
			return nil, err
		}
		v.LastBurst, v.NextDue = optionalTime(g.LastBurst), optionalTime(due)
	}
	members := map[uint64]groups.Member{}
	for _, m := range g.Members {
		members[m.Number] = m
		v.Workers = append(v.Workers, memberView{
			Number: m.Number, Name: text(m.Name), Operator: m.Operator, Lost: m.Dead, LastHeartbeat: optionalTime(m.LastHeartbeat), Lease: m.Lease.Seconds(), Shards: []int{},
		})
	}
	for _, s := range g.Shards {
		shard := shardView{Shard: s.Number, Owner: s.Owner, Epoch: s.Epoch}
		if owner, known := members[s.Owner]; known {
			shard.OwnerName, shard.OwnerLost = text(owner.Name), owner.Dead
			i := slices.IndexFunc(v.Workers, func(m memberView) bool { return m.Number == s.Owner })
			v.Workers[i].Shards = append(v.Workers[i].Shards, s.Number)
		}
		r.addShardLag(&shard, row, written)
		v.Parts = append(v.Parts, shard)
	}
	return v, nil
}

func (r *reading) addShardLag(shard *shardView, row groupRow, written topicRow) {
	if written.Read {
		rate := written.written.rate(shard.Shard)
		shard.Written = &rate
	}
	for _, l := range row.shardLags {
		if l.Shard == shard.Shard {
			view := lagOf(l.Lag, r.now)
			shard.Lag = &view
			shard.Handled = r.rates.handled(rateKey{row.Group, row.Topic, shard.Shard}, lagAt{r.now, l.Events, !l.AtLeast}, written.written)
		}
	}
}

// listPage is the number of aggregates or events of a group on a page.
const listPage = 50

// behindView is the page of blocked and parked aggregates of a group.
type behindView struct {
	Group      string      `json:"group"`
	Topic      string      `json:"topic"`
	Aggregates []behindRow `json:"aggregates"`
	Next       string      `json:"next,omitempty"` // token of the next page
	First      bool        `json:"-"`
	// All reports that aggregates of the topic were compared with the positions of the group. This
	// includes aggregates that are not listed as blocked yet. More reports that not all were
	// compared.
	All  bool `json:"all"`
	More bool `json:"more"`
}

func (v behindView) title() string { return "Blocked and parked: " + v.Group + " on " + v.Topic }

// behindRow is an aggregate with events that a group has not handled.
type behindRow struct {
	aggregateRef
	Next   uint64     `json:"waits_at"` // number of the next event to handle; 0: not known
	Head   uint64     `json:"head"`     // number of the last event, known when it was listed
	Parked bool       `json:"parked"`
	Since  *time.Time `json:"since"` // time of the failed attempt of Reason
	Reason string     `json:"reason"`
	// Event is the event Next; nil if it could not be read.
	Event *eventView `json:"event"`
}

// listPlace is the last entry of a page of a list: an aggregate, or an event of it.
type listPlace struct {
	ID     string `json:"id"`
	Number uint64 `json:"number,omitempty"`
}

// after returns the aggregate after which a page begins, the zero id for the first page.
func (p listPlace) after(topic string) aggregate.ID {
	if p.ID == "" {
		return aggregate.ID{}
	}
	return aggregate.ID{Type: topic, Value: p.ID}
}

// placeOf returns the entry after which the page begins, from the parameter after.
func (r *reading) placeOf(purpose string) (after listPlace, first bool, err error) {
	token := r.query.Get("after")
	if token == "" {
		return after, true, nil
	}
	return after, false, r.seal.open(purpose, token, &after)
}

func (r *reading) behind(ctx context.Context) (any, error) {
	name, topic, err := r.named()
	if err != nil {
		return nil, err
	}
	v := behindView{Group: name, Topic: topic, Aggregates: []behindRow{}, First: true, All: r.query.Get("all") != ""}
	if v.All {
		return v, r.compareAll(ctx, &v)
	}
	purpose := "behind " + name + " " + topic
	after, first, err := r.placeOf(purpose)
	if err != nil {
		return nil, err
	}
	v.First = first
	began := after
	for b, err := range r.config.Groups.Of(name, topic).Behind(ctx, after.after(topic)) {
		if err != nil {
			return nil, err
		}
		if len(v.Aggregates) == listPage || r.spent() && after != began {
			v.Next = r.seal.seal(purpose, after)
			break
		}
		after = listPlace{ID: b.Aggregate.Value}
		v.Aggregates = append(v.Aggregates, r.behindRow(ctx, b))
	}
	return v, nil
}

// compareAll adds the aggregates with events that the group has not handled, up to a page of them.
func (r *reading) compareAll(ctx context.Context, v *behindView) error {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	var mu sync.Mutex
	var found []groups.BehindAggregate
	_, err := r.config.Groups.Of(v.Group, v.Topic).Lag(r.limited(ctx), groups.LagOptions{OldestOf: -1, Behind: func(b groups.BehindAggregate) {
		mu.Lock()
		defer mu.Unlock()
		if len(found) < listPage {
			found = append(found, b)
			return
		}
		enough()
	}})
	if v.More = errors.Is(err, journal.ErrUnitLimit) || len(found) == listPage && errors.Is(err, context.Canceled); !v.More && err != nil {
		return err
	}
	for _, b := range found {
		v.Aggregates = append(v.Aggregates, r.behindRow(context.WithoutCancel(ctx), b))
	}
	return nil
}

func (r *reading) behindRow(ctx context.Context, b groups.BehindAggregate) behindRow {
	row := behindRow{aggregateRef: refOf(b.Aggregate), Next: b.Next, Head: b.Head}
	if b.Parked != nil {
		row.Parked, row.Since, row.Reason = true, optionalTime(b.Parked.At), text(b.Parked.Reason)
	}
	if b.Failure != nil {
		row.Since, row.Reason = optionalTime(b.Failure.At), text(b.Failure.Reason)
	}
	row.Event = r.one(ctx, b.Aggregate, row.Next)
	return row
}

// one reads a single event. It returns nil if the event cannot be read; the page of the aggregate
// shows the reason.
func (r *reading) one(ctx context.Context, id aggregate.ID, number uint64) *eventView {
	if number == 0 {
		return nil
	}
	for record, err := range r.config.Journal.Raw().Events(ctx, id, number, number) {
		if err != nil {
			return nil
		}
		view := r.event(ctx, record)
		return &view
	}
	return nil
}

// skippedView is the page of the events that a group has skipped.
type skippedView struct {
	Group  string       `json:"group"`
	Topic  string       `json:"topic"`
	Events []skippedRow `json:"events"`
	Next   string       `json:"next,omitempty"` // token of the next page
	First  bool         `json:"-"`
}

func (v skippedView) title() string { return "Skipped events: " + v.Group + " on " + v.Topic }

type skippedRow struct {
	eventRef            // At is the time at which it was skipped
	Reason   string     `json:"reason"`
	Due      *time.Time `json:"due"` // time of the next attempt; nil: none
	Attempts int        `json:"attempts"`
	Event    *eventView `json:"event"`
}

func (r *reading) skipped(ctx context.Context) (any, error) {
	name, topic, err := r.named()
	if err != nil {
		return nil, err
	}
	v := skippedView{Group: name, Topic: topic, Events: []skippedRow{}}
	purpose := "skipped " + name + " " + topic
	after, first, err := r.placeOf(purpose)
	if err != nil {
		return nil, err
	}
	v.First = first
	for s, err := range r.config.Groups.Of(name, topic).Skipped(ctx, after.after(topic), after.Number) {
		if err != nil {
			return nil, err
		}
		if len(v.Events) == listPage || r.spent() && len(v.Events) > 0 {
			v.Next = r.seal.seal(purpose, after)
			break
		}
		v.Events = append(v.Events, skippedRow{
			eventRef: eventRef{refOf(s.Aggregate), s.Number, s.EventType, shownTime(s.At)}, Reason: text(s.Reason), Due: optionalTime(s.Due), Attempts: s.Attempts,
			Event: r.one(ctx, s.Aggregate, s.Number),
		})
		after = listPlace{s.Aggregate.Value, s.Number}
	}
	return v, nil
}
