package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

const (
	// eventsPage is the number of events of an aggregate on a page.
	eventsPage = 25
	// mostReplayed is the maximum number of events that are replayed to compute the state before
	// the first event of a page.
	mostReplayed = 2000
)

// timelineView is the page of an aggregate with some of its events.
type timelineView struct {
	aggregateRef
	Version         uint64        `json:"version"`
	Shard           int           `json:"shard"`
	Snapshot        *snapshotView `json:"snapshot"`
	TruncatedBefore uint64        `json:"truncated_before,omitempty"`
	DeletedAt       *time.Time    `json:"deleted_at,omitempty"`
	// From and To are the numbers of the first and the last event of the page.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Events come newest first.
	Events []eventView `json:"events"`
	// AsOf is the time of the parameter at. To is then the last event that had occurred.
	AsOf *time.Time `json:"as_of,omitempty"`
	// NoStates is the reason why events have no state.
	NoStates string `json:"no_states,omitempty"`
	// Failed is the error that has ended the page early.
	Failed string `json:"failed,omitempty"`
	// Newer and Older are the last events of the next and the previous page; 0 if there is none.
	// The page of newer events begins after To.
	Newer uint64 `json:"newer,omitempty"`
	Older uint64 `json:"older,omitempty"`
	// Process reports that the aggregate is a process, which may have timeouts and commands.
	Process bool `json:"process"`
}

// snapshotView is the latest snapshot.
type snapshotView struct {
	Number uint64 `json:"number"`
	Schema uint64 `json:"schema"`
	Bytes  int    `json:"bytes"`
	// State is the payload, if the console has no repository for the type.
	State *payloadView `json:"state,omitempty"`
}

func (v timelineView) title() string { return v.Type + " " + v.ID }

// HasStates reports that the state after at least one event is known.
func (v timelineView) HasStates() bool {
	return slices.ContainsFunc(v.Events, func(e eventView) bool { return e.State != nil })
}

// At returns AsOf as the value of an input of type datetime-local.
func (v timelineView) At() string {
	if v.AsOf == nil {
		return ""
	}
	return v.AsOf.UTC().Format("2006-01-02T15:04:05.000")
}

// timeline loads the events of an aggregate up to a number, or up to a time.
func (r *reading) timeline(ctx context.Context) (any, error) {
	id, err := r.aggregate()
	if err != nil {
		return nil, err
	}
	head, err := r.headOf(ctx, id)
	if err != nil {
		return nil, err
	}
	v := timelineView{
		aggregateRef: refOf(id), Version: head.Version, Shard: r.shard(id), TruncatedBefore: head.TruncatedBefore,
		DeletedAt: optionalTime(head.DeletedAt), Events: []eventView{}, Process: r.isProcess(id.Type),
	}
	v.Snapshot = r.snapshot(head)
	if !head.DeletedAt.IsZero() {
		return v, nil
	}
	if err := r.choose(ctx, &v, head); err != nil || v.To < v.From {
		return v, err
	}
	r.addEvents(ctx, &v, id)
	if v.To < v.Version {
		v.Newer = min(v.Version, v.To+eventsPage)
	}
	r.addStates(ctx, &v, id)
	relate(v.Events)
	slices.Reverse(v.Events)
	return v, nil
}

func (r *reading) snapshot(head journal.Head) *snapshotView {
	s := head.Snapshot
	if s == nil {
		return nil
	}
	v := &snapshotView{Number: s.Number, Schema: s.Schema, Bytes: len(s.Payload)}
	if r.repositories()[head.Aggregate.Type] == nil {
		state := payloadView{Bytes: len(s.Payload), Withheld: "encoded as " + s.Encoding + ", which this console cannot decode"}
		if s.Encoding == "" {
			state = r.show(Payload{Kind: StatePayload, Aggregate: head.Aggregate, Number: s.Number, Data: s.Payload}, len(s.Payload), false)
		}
		v.State = &state
	}
	return v
}

// choose sets the range of events on the page: up to the parameter to, or up to the time of the
// parameter at, or up to the newest event.
func (r *reading) choose(ctx context.Context, v *timelineView, head journal.Head) error {
	first, last := max(head.TruncatedBefore, 1), head.Version
	to, err := r.number("to")
	if err != nil {
		return err
	}
	from, err := r.number("from")
	if err != nil {
		return err
	}
	if text := r.query.Get("at"); text != "" {
		at, err := parseTime(text)
		if err != nil {
			return err
		}
		v.AsOf = &at
		to, err = r.config.Journal.VersionAt(ctx, head.Aggregate, at)
		if err != nil {
			return err
		}
		if to == 0 {
			v.From, v.Newer = 1, min(last, eventsPage)
			return nil
		}
	}
	if to == 0 || to > last {
		to = last
	}
	v.To = to
	v.From = max(first, from)
	if to >= eventsPage {
		v.From = max(v.From, to-eventsPage+1)
	}
	if v.To < v.From {
		return nil
	}
	if v.From > first {
		v.Older = v.From - 1
	}
	return nil
}

// parseTime parses a time in RFC 3339, or the value of an input of type datetime-local, in UTC.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999", "2006-01-02T15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, &requestError{"The parameter at is " + strconv.Quote(text) + ": want a time such as 2006-01-02T15:04:05Z."}
}

// addEvents adds the events, oldest first.
func (r *reading) addEvents(ctx context.Context, v *timelineView, id aggregate.ID) {
	single := v.From == v.To
	for record, err := range r.config.Journal.Raw().Events(ctx, id, v.From, v.To) {
		if err != nil {
			v.Failed = err.Error()
			return
		}
		if r.spent() && len(v.Events) > 0 {
			v.Failed = fmt.Sprintf("the page has reached its limit of read units, so it ends with event %s. Open single events for others.", number(v.To))
			return
		}
		v.To = record.Number
		v.Events = append(v.Events, r.eventFull(ctx, record, single))
	}
}

// addStates adds the state after each event, and the changes of the state.
func (r *reading) addStates(ctx context.Context, v *timelineView, id aggregate.ID) {
	repo := r.repositories()[id.Type]
	switch {
	case repo == nil:
		v.NoStates = "The console has no repository for this type."
		return
	case r.spent():
		v.NoStates = "The page has reached its limit of read units."
		return
	case r.config.HidePayloads:
		v.NoStates = "States are " + hidden + "."
		return
	}
	defer func() {
		if p := recover(); p != nil { // an event's Apply or a state's MarshalJSON has panicked
			v.NoStates = fmt.Sprintf("The application panicked: %v", p)
		}
	}()
	var before []byte
	for s, err := range repo.States(ctx, id.Value, repository.StatesQuery{From: v.From, To: v.To, MaxReplay: mostReplayed}) {
		if err != nil {
			v.NoStates = whyNoStates(err)
			return
		}
		number := v.From - 1
		if s.Record != nil {
			number = s.Record.Number
		}
		view, data := r.state(id, number, s.State, v.From == v.To)
		if i := int(number) - int(v.From); s.Record != nil && i < len(v.Events) {
			e := &v.Events[i]
			e.State = &view
			if view.Withheld == "" {
				e.Changes, e.MoreChanges = changes(before, data)
			}
		}
		before = data
		if r.spent() {
			v.NoStates = "The page has reached its limit of read units before the later events."
			return
		}
	}
}

// whyNoStates returns a text for the visitor.
func whyNoStates(err error) string {
	var far *repository.ReplayLimitError
	if errors.As(err, &far) {
		from := "there is no snapshot before it"
		if far.Start > 0 {
			from = fmt.Sprintf("the nearest snapshot before it is of event %s", number(far.Start))
		}
		return fmt.Sprintf("For the state before event %s more than %s events would have to be replayed: %s.", number(far.From), number(far.Max), from)
	}
	return err.Error()
}

// relate links the events of a page to the events that have caused them, by their causation ids.
func relate(events []eventView) {
	byID := map[string]int{}
	for i, e := range events {
		byID[e.EventID] = i
	}
	for i := range events {
		cause, ok := byID[events[i].Causation]
		if ok && cause != i && events[i].Causation != "" {
			events[i].CausedBy = events[cause].Number
			events[cause].Causes = append(events[cause].Causes, events[i].Number)
		}
	}
}
