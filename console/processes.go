package console

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

// processesView is the page of process managers.
type processesView struct {
	Types []string `json:"types"`
	Type  string   `json:"type"` // the selected type; empty for none
	// Show is the list. "due" is read from an index. "pending" and "open" read the whole table.
	Show    string        `json:"show"`
	Pending []pendingView `json:"pending"`
	Open    []openView    `json:"open"`
	// More reports that there are more rows: the page has reached a limit.
	More    bool `json:"more"`
	NoTable bool `json:"no_table"`
}

func (processesView) title() string { return "Process managers" }

// pendingView is a timeout that is set, or commands that are not sent yet.
type pendingView struct {
	Process  aggregateRef  `json:"process"`
	Row      string        `json:"row"`
	Timeout  string        `json:"timeout,omitempty"`
	Input    string        `json:"input,omitempty"`
	Commands []commandView `json:"commands,omitempty"`
	At       time.Time     `json:"at"`      // time at which it is due or was stored
	Next     time.Time     `json:"next_at"` // time of the next attempt
	Late     float64       `json:"late_seconds"`
	Attempts int           `json:"attempts"`
	Failure  string        `json:"failure"`
}

// Overdue reports that the timeout or commands should have been handled before.
func (p pendingView) Overdue() bool { return p.Late > overdueAfter.Seconds() }

type commandView struct {
	Topic            string            `json:"topic"`
	ID               string            `json:"id"`
	Metadata         map[string]string `json:"metadata"`
	MetadataWithheld string            `json:"metadata_withheld,omitempty"`
	Payload          payloadView       `json:"payload"`
}

// openView is a process that has not ended.
type openView struct {
	Process aggregateRef `json:"process"`
	Begun   time.Time    `json:"begun"`
	Age     float64      `json:"age_seconds"`
}

func (r *reading) pending(p process.Pending) pendingView {
	v := pendingView{
		Process: refOf(p.Process), Row: text(p.Row), Timeout: text(p.Timeout), Input: text(p.Input), At: shownTime(p.At), Next: shownTime(p.Next),
		Late: max(r.now.Sub(p.At), 0).Seconds(), Attempts: p.Attempts, Failure: text(p.Failure),
	}
	for _, c := range p.Commands {
		view := commandView{Topic: text(c.Topic), ID: text(c.Message.UUID)}
		view.Metadata, view.MetadataWithheld = r.metadata(p.Process, 0, "", aggregate.Metadata(c.Message.Metadata))
		view.Payload = r.show(Payload{Kind: CommandPayload, Aggregate: p.Process, Data: c.Message.Payload}, len(c.Message.Payload), false)
		v.Commands = append(v.Commands, view)
	}
	return v
}

// mostProcesses is the maximum number of rows of a list.
const mostProcesses = 200

func (r *reading) processes(ctx context.Context) (any, error) {
	all, _, err := r.listGroups(ctx)
	if err != nil {
		return nil, err
	}
	v := processesView{Types: append([]string{}, r.processTypes(all)...), Type: r.query.Get("type"), Show: r.query.Get("show"), Pending: []pendingView{}, Open: []openView{}}
	switch v.Show {
	case "":
		v.Show = "due"
		fallthrough
	case "due":
		err = r.addDue(ctx, &v)
	case "pending":
		err = r.addPending(ctx, &v)
	case "open":
		err = r.addOpen(ctx, &v)
	default:
		return nil, &requestError{"The parameter show is " + v.Show + ": use due, pending or open."}
	}
	if errors.Is(err, journal.ErrTableMissing) {
		v.NoTable, err = true, nil
	}
	return v, err
}

// addDue adds overdue timeouts and commands, of one type or of all known types.
func (r *reading) addDue(ctx context.Context, v *processesView) error {
	types := v.Types
	if v.Type != "" {
		types = []string{v.Type}
	}
	for _, name := range types {
		if r.spent() || len(v.Pending) >= mostProcesses {
			v.More = true
			return nil
		}
		late, more, err := r.late(ctx, name, mostProcesses-len(v.Pending))
		if err != nil {
			return err
		}
		v.More = v.More || more
		for _, p := range late {
			v.Pending = append(v.Pending, r.pending(p))
		}
	}
	return nil
}

func (r *reading) addPending(ctx context.Context, v *processesView) error {
	for p, err := range r.config.Backlog.Pending(r.limited(ctx), process.BacklogQuery{Type: v.Type}) {
		if errors.Is(err, journal.ErrUnitLimit) {
			v.More = true
			return nil
		}
		if err != nil {
			return err
		}
		if len(v.Pending) == mostProcesses {
			v.More = true
			return nil
		}
		v.Pending = append(v.Pending, r.pending(p))
	}
	return nil
}

func (r *reading) addOpen(ctx context.Context, v *processesView) error {
	for p, err := range r.config.Backlog.OpenProcesses(r.limited(ctx), process.BacklogQuery{Type: v.Type}) {
		if errors.Is(err, journal.ErrUnitLimit) {
			v.More = true
			return nil
		}
		if err != nil {
			return err
		}
		if len(v.Open) == mostProcesses {
			v.More = true
			return nil
		}
		v.Open = append(v.Open, openView{refOf(p.Process), shownTime(p.Begun), max(r.now.Sub(p.Begun), 0).Seconds()})
	}
	return nil
}

// processView is the page of one process, with its state, timeouts and unsent commands. The page of
// the aggregate has its events.
type processView struct {
	Process aggregateRef  `json:"process"`
	Open    *openView     `json:"open"` // nil: it has ended, or its definition has no EndsWhen
	Pending []pendingView `json:"pending"`
	More    bool          `json:"more"`  // there are more rows
	State   *payloadView  `json:"state"` // nil if there is none, or if it cannot be loaded
	Version uint64        `json:"version"`
	NoState string        `json:"no_state,omitempty"`
}

func (v processView) title() string { return "Process " + v.Process.Type + " " + v.Process.ID }

func (r *reading) process(ctx context.Context) (any, error) {
	id, err := r.aggregate()
	if err != nil {
		return nil, err
	}
	v := processView{Process: refOf(id), Pending: []pendingView{}}
	query := process.BacklogQuery{Type: id.Type, ID: id.Value}
	for p, err := range r.config.Backlog.Pending(ctx, query) {
		if err != nil {
			return nil, err
		}
		if len(v.Pending) == mostProcesses || len(v.Pending) > 0 && r.spent() {
			v.More = true
			break
		}
		v.Pending = append(v.Pending, r.pending(p))
	}
	for p, err := range r.config.Backlog.OpenProcesses(ctx, query) {
		if err != nil {
			return nil, err
		}
		v.Open = &openView{refOf(p.Process), shownTime(p.Begun), max(r.now.Sub(p.Begun), 0).Seconds()}
	}
	head, err := r.config.Journal.Raw().Head(ctx, id)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		v.NoState = "The journal has no events of this process."
		return v, nil
	case err != nil:
		return nil, err
	case !head.DeletedAt.IsZero():
		v.NoState = "The process was deleted."
		return v, nil
	}
	v.Version = head.Version
	t := timelineView{aggregateRef: v.Process, From: head.Version, To: head.Version, Events: []eventView{{}}}
	r.addStates(ctx, &t, id)
	v.State, v.NoState = t.Events[0].State, t.NoStates
	return v, nil
}

// isProcess reports that aggregates of a type are processes of a manager of the application.
func (r *reading) isProcess(aggregateType string) bool {
	if r.config.App == nil {
		return false
	}
	for name, component := range r.config.App.Components() {
		if _, ok := component.(interface{ Stats() process.Stats }); ok && name == aggregateType {
			return true
		}
	}
	return false
}
