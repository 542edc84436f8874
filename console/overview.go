package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// overviewView is the first page.
type overviewView struct {
	// Attention lists the concerns, the most severe first.
	Attention []concern  `json:"attention"`
	Topics    []topicRow `json:"topics"`
	Groups    []groupRow `json:"groups"`
	// LeftOut names the parts that were not read, because the page had reached its limit of read
	// units.
	LeftOut []string `json:"left_out"`
	// Failed holds the errors of parts that could not be read.
	Failed []string `json:"failed"`
	// Find reports that the visitor requested the types of all aggregates. Found reports that all
	// were read.
	Find  bool `json:"-"`
	Found bool `json:"-"`

	Layout journal.Layout `json:"layout"`
	Shards int            `json:"shards"`
}

func (overviewView) title() string { return "Overview" }

// concern is something that needs attention.
type concern struct {
	Kind  string `json:"kind"` // a key of severity
	Text  string `json:"text"`
	Group string `json:"group,omitempty"`
	Topic string `json:"topic,omitempty"`
	// Process is a type of process managers.
	Process string `json:"process,omitempty"`
	Link    string `json:"-"`
}

// severity is the order of the kinds of concerns, the most severe first.
var severity = map[string]int{"stopped": 0, "blocked": 1, "parked": 2, "member_lost": 3, "no_members": 4, "overdue": 5, "slow": 6, "behind": 7, "skipped": 8, "paused": 9}

// Bad reports that events or timeouts are not handled until an operator acts.
func (c concern) Bad() bool { return severity[c.Kind] <= severity["overdue"] }

func (r *reading) overview(ctx context.Context) (any, error) {
	v := overviewView{
		Attention: []concern{}, Topics: []topicRow{}, Groups: []groupRow{}, LeftOut: []string{},
		Layout: r.config.Journal.Config().Layout, Shards: r.config.Journal.Shards(), Find: r.query.Get("find") != "",
	}
	all, failed, err := r.listGroups(ctx)
	if err != nil {
		return nil, err
	}
	topics, failedTopics, err := r.topicRows(ctx, r.topicNames(all), all)
	if err != nil {
		return nil, err
	}
	v.Topics = append(v.Topics, topics...)
	for _, t := range topics {
		if t.LeftOut {
			v.LeftOut = append(v.LeftOut, "topic "+t.Topic)
		}
	}
	rows, failedRows, err := r.groupRows(ctx, all, topics)
	if err != nil {
		return nil, err
	}
	v.Failed = slices.Concat(failed, failedTopics, failedRows)
	v.Groups = append(v.Groups, rows...)
	for _, row := range rows {
		if row.LeftOut {
			v.LeftOut = append(v.LeftOut, "lag of group "+row.Group+" on "+row.Topic)
		}
		v.Attention = append(v.Attention, row.concerns()...)
	}
	if err := r.addOverdue(ctx, &v, all); err != nil {
		return nil, err
	}
	slices.SortStableFunc(v.Attention, func(a, b concern) int { return cmp.Compare(severity[a.Kind], severity[b.Kind]) })
	if v.Find {
		err = r.addFound(ctx, &v)
	}
	return v, err
}

// addFound adds the topics that only a read of all aggregates finds.
func (r *reading) addFound(ctx context.Context, v *overviewView) error {
	found, complete, err := r.findTopics(ctx)
	if err != nil {
		return fmt.Errorf("find topics: %w", err)
	}
	v.Found = complete
	for _, name := range found {
		if !slices.ContainsFunc(v.Topics, func(t topicRow) bool { return t.Topic == name }) {
			v.Topics = append(v.Topics, topicRow{Topic: name, Groups: []string{}})
		}
	}
	return nil
}

// mostOverdue is the maximum number of overdue timeouts of a type that are counted.
const mostOverdue = 20

// overdueAfter is the delay after which a timeout counts as overdue. Managers poll once a second.
const overdueAfter = 10 * time.Second

const (
	// retries is the time ahead of now up to which rows are read. Managers move a failed timeout
	// ahead by process.Config.RetryAfter, 30 seconds by default. If RetryAfter is longer than
	// retries, such timeouts are not found.
	retries = time.Minute
	// mostAhead is the maximum number of rows ahead of now that are read. Most of them are not
	// late.
	mostAhead = 100
)

// addOverdue adds the types of process managers that have overdue timeouts or failed commands.
func (r *reading) addOverdue(ctx context.Context, v *overviewView, all []groups.Status) error {
	for _, name := range r.processTypes(all) {
		if r.spent() {
			v.LeftOut = append(v.LeftOut, "timeouts of "+name)
			continue
		}
		late, more, err := r.late(ctx, name, mostOverdue)
		if errors.Is(err, journal.ErrTableMissing) {
			return nil
		}
		if err != nil {
			v.Failed = append(v.Failed, fmt.Errorf("timeouts of %s: %w", name, err).Error())
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		if len(late) == 0 {
			if more {
				v.LeftOut = append(v.LeftOut, "some timeouts of "+name+" (many are due)")
			}
			continue
		}
		text := orMore(len(late), len(late) == mostOverdue, "timeout or command is overdue", "timeouts or commands are overdue")
		v.Attention = append(v.Attention, concern{
			Kind: "overdue", Process: name, Link: link("processes", "type", name),
			Text: fmt.Sprintf("%s: %s", name, text),
		})
	}
	return nil
}

// late returns overdue timeouts and commands of a type, up to the number most, and whether there
// may be more.
func (r *reading) late(ctx context.Context, processType string, most int) (late []process.Pending, more bool, err error) {
	ahead := 0
	for p, err := range r.config.Backlog.Due(ctx, processType, r.now.Add(retries)) {
		if err != nil {
			return nil, false, err
		}
		if r.now.Sub(p.At) > overdueAfter {
			late = append(late, p)
		}
		if p.Next.After(r.now) {
			ahead++
		}
		if len(late) == most || ahead == mostAhead || r.spent() {
			return late, true, nil
		}
	}
	return late, false, nil
}

// processTypes returns the types of process managers. Without an App it returns the names of all
// groups: the group of a process manager has the name of its type.
func (r *reading) processTypes(all []groups.Status) []string {
	var names []string
	if r.config.App != nil {
		for name, component := range r.config.App.Components() {
			if _, ok := component.(interface{ Stats() process.Stats }); ok {
				names = append(names, name)
			}
		}
	} else {
		for _, g := range all {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Label returns the kind of a concern as the page shows it.
func (c concern) Label() string {
	switch c.Kind {
	case "member_lost":
		return "member lost"
	case "no_members":
		return "no members"
	}
	return c.Kind
}
