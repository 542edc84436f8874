package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Action is a change that a visitor requests. The fields come from the visitor's form. An action
// uses the fields in the list at Name. The others are usually empty, and have no effect.
type Action struct {
	// Name is one of these:
	//
	//   - "pause", "resume", "reset": a consumer group. Uses Group, Topic; a reset also To.
	//   - "retry", "skip", "reset-aggregate": an aggregate in a group. Uses Group, Aggregate, whose
	//     type is the topic, and Number: the event to skip, or the last event that counts as
	//     handled.
	//   - "retry-all", "skip-all": the parked aggregates of a group. Uses Group, Topic, Reason,
	//     EventType.
	//   - "retry-skipped", "forget-skipped": an event that a group has skipped. Uses Group,
	//     Aggregate, Number.
	//   - "retry-all-skipped": the events that a group has skipped. Uses Group, Topic, Reason,
	//     EventType.
	//   - "switch", "rollback": a generation of a read model. Uses Model, and Number for the
	//     generation.
	//   - "retry-pending", "drop-pending": a timeout or stored commands of a process. Uses
	//     Aggregate for the process, and Row.
	Name string

	Group, Topic      string       // the consumer group
	Aggregate         aggregate.ID // the aggregate whose event is retried or skipped
	Number            uint64       // the sequence number of that event
	Reason, EventType string       // fields of a groups.Selection; empty for all
	Model             string       // the read model
	Row               string       // the timeout or the commands: a process.Pending.Row
	To                string       // "beginning", "now" or a time in RFC 3339

	at string // time of the row on the page
	// before is the time at which the page was read, for actions on all entries of a list. Zero
	// means that it is not known.
	before time.Time
}

// doer executes the actions of one name.
type doer struct {
	// do executes an action, and returns a text for the visitor.
	do func(c *Console, ctx context.Context, a Action) (done string, err error)
	// confirm returns the text that the visitor must type to confirm an action; nil for none.
	confirm func(a Action) string
	// numbered: the action needs a number.
	numbered bool
}

func groupName(a Action) string { return a.Group }

var actions = map[string]doer{
	"pause": {do: func(c *Console, ctx context.Context, a Action) (string, error) {
		return "The group is paused. Its members stop within seconds.", c.config.Groups.Of(a.Group, a.Topic).Pause(ctx)
	}},
	"resume": {do: func(c *Console, ctx context.Context, a Action) (string, error) {
		return "The group continues within seconds.", c.config.Groups.Of(a.Group, a.Topic).Resume(ctx)
	}},
	"reset": {confirm: groupName, do: (*Console).reset},
	"retry": {do: func(c *Console, ctx context.Context, a Action) (string, error) {
		return "The aggregate's events are tried again.", c.config.Groups.Unpark(ctx, a.Group, a.Aggregate)
	}},
	"skip": {numbered: true, do: func(c *Console, ctx context.Context, a Action) (string, error) {
		return fmt.Sprintf("Event %d was skipped, and recorded.", a.Number), c.config.Groups.Skip(ctx, a.Group, a.Aggregate, a.Number)
	}},
	"reset-aggregate": {numbered: true, do: func(c *Console, ctx context.Context, a Action) (string, error) {
		return fmt.Sprintf("The group continues after event %d of the aggregate.", a.Number), c.config.Groups.ResetAggregate(ctx, a.Group, a.Aggregate, a.Number)
	}},
	"retry-all": {do: func(c *Console, ctx context.Context, a Action) (string, error) {
		n, err := c.config.Groups.Of(a.Group, a.Topic).UnparkAll(ctx, selection(a))
		return counted(n, "aggregate is", "aggregates are", "tried again", err)
	}},
	"skip-all": {confirm: groupName, do: func(c *Console, ctx context.Context, a Action) (string, error) {
		n, err := c.config.Groups.Of(a.Group, a.Topic).SkipAll(ctx, selection(a))
		return counted(n, "event was", "events were", "skipped, and recorded", err)
	}},
	"retry-skipped": {numbered: true, do: func(c *Console, ctx context.Context, a Action) (string, error) {
		return fmt.Sprintf("Event %d is tried again.", a.Number), c.config.Groups.RetrySkipped(ctx, a.Group, a.Aggregate, a.Number)
	}},
	"retry-all-skipped": {do: func(c *Console, ctx context.Context, a Action) (string, error) {
		n, err := c.config.Groups.Of(a.Group, a.Topic).RetryAllSkipped(ctx, selection(a))
		return counted(n, "event is", "events are", "tried again", err)
	}},
	"forget-skipped": {numbered: true, do: func(c *Console, ctx context.Context, a Action) (string, error) {
		return "The record was deleted.", c.config.Groups.ForgetSkipped(ctx, a.Group, a.Aggregate, a.Number)
	}},
	"switch":        {numbered: true, do: (*Console).switchModel},
	"rollback":      {numbered: true, do: (*Console).rollBackModel},
	"retry-pending": {do: (*Console).retryPending},
	"drop-pending":  {do: (*Console).dropPending},
}

func selection(a Action) groups.Selection {
	return groups.Selection{Reason: a.Reason, EventType: a.EventType, Before: a.before}
}

// counted returns a text with the number of changes, also if an error ended the action.
func counted(n int, one, many, what string, err error) (string, error) {
	done := plural(n, one, many) + " " + what + "."
	if err != nil && n > 0 {
		err = fmt.Errorf("%s Then the action failed; repeat it for the rest: %w", done, err)
	}
	return done, err
}

func (c *Console) reset(ctx context.Context, a Action) (string, error) {
	var to subscriber.Start
	switch a.To {
	case "beginning":
		to = subscriber.Beginning()
	case "now":
		to = subscriber.Now()
	default:
		at, err := parseTime(a.To)
		if err != nil {
			return "", &requestError{"Choose where the group begins: " + err.Error()}
		}
		to = subscriber.At(at)
	}
	err := c.config.Groups.Of(a.Group, a.Topic).Reset(ctx, to, nil)
	if errors.Is(err, groups.ErrLeftovers) {
		return "The group was reset. Rows of earlier resets are left in the table; `millrace group cleanup` deletes them.", nil
	}
	return "The group was reset.", err
}

func (c *Console) generation(ctx context.Context, a Action) (*readmodel.Model, readmodel.Generation, error) {
	m, err := (&reading{Console: c}).openModel(ctx, a.Model)
	return m, readmodel.Generation{Model: a.Model, Number: a.Number}, err
}

func (c *Console) switchModel(ctx context.Context, a Action) (string, error) {
	m, g, err := c.generation(ctx, a)
	if err == nil {
		err = m.Switch(ctx, g)
	}
	return fmt.Sprintf("Queries read generation %d.", a.Number), err
}

func (c *Console) rollBackModel(ctx context.Context, a Action) (string, error) {
	m, g, err := c.generation(ctx, a)
	if err != nil {
		return "", err
	}
	serving, err := m.Rollback(ctx, g)
	return fmt.Sprintf("Queries read generation %d again.", serving.Number), err
}

// pendingRow reads the row of an action again, since it may have changed. If a timeout was set
// again for another time, it is not the timeout that the visitor has seen.
func (c *Console) pendingRow(ctx context.Context, a Action) (process.Pending, error) {
	for p, err := range c.config.Backlog.Pending(ctx, process.BacklogQuery{Type: a.Aggregate.Type, ID: a.Aggregate.Value}) {
		if err != nil || p.Row == a.Row && isoTime(shownTime(p.At)) == a.at {
			return p, err
		}
	}
	return process.Pending{}, process.ErrNotPending
}

func (c *Console) retryPending(ctx context.Context, a Action) (string, error) {
	p, err := c.pendingRow(ctx, a)
	if err == nil && p.Timeout != "" && p.At.After(c.now()) {
		return "", &requestError{"The timeout is not due yet."}
	}
	if err == nil {
		err = c.config.Backlog.Retry(ctx, p)
	}
	return "A manager tries it again within a second or two.", err
}

func (c *Console) dropPending(ctx context.Context, a Action) (string, error) {
	p, err := c.pendingRow(ctx, a)
	if err == nil {
		err = c.config.Backlog.Drop(ctx, p)
	}
	return "It was dropped.", err
}

// serveAction executes the action of a form, and redirects to the page of the form.
func (c *Console) serveAction(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		http.Error(w, "Actions are sent by forms.", http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseForm(); err != nil {
		c.fail(w, r, "", &requestError{"The form cannot be read: " + err.Error()})
		return
	}
	page, query, err := parseBack(r.PostForm.Get("back"))
	if err != nil {
		c.fail(w, r, "", err)
		return
	}
	done, err := c.act(r)
	if err != nil {
		c.failTo(w, r, back(page, query), err)
		return
	}
	query.Set("done", c.seal.seal("done", done))
	seeOther(w, "./"+page+"?"+query.Encode())
}

// seeOther redirects to a relative link. http.Redirect would make it absolute without the prefix
// that was stripped from the path.
func seeOther(w http.ResponseWriter, link string) {
	w.Header().Set("Location", link)
	w.WriteHeader(http.StatusSeeOther)
}

// mostForm is the maximum size of a form in bytes.
const mostForm = 64 << 10

// parseBack returns the page of this console that a link leads to, and its parameters.
func parseBack(link string) (page string, query url.Values, err error) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(link, "./"), "?")
	query, err = url.ParseQuery(rest)
	if _, known := pages[name]; !known || err != nil {
		return "", nil, &requestError{"The form does not say which page it is from."}
	}
	return name, query, nil
}

// act executes an action if it is allowed, and logs the outcome.
func (c *Console) act(r *http.Request) (done string, err error) {
	a, d, err := parseAction(r.PostForm)
	var actor string
	if err == nil {
		actor, err = c.allow(r, a)
	}
	if err == nil && d.confirm != nil && r.PostForm.Get("confirm") != d.confirm(a) {
		err = &requestError{fmt.Sprintf("Nothing was changed: type %q to confirm.", d.confirm(a))}
	}
	if err == nil {
		// The action continues if the visitor leaves.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), longest)
		defer cancel()
		done, err = d.do(c, ctx, a)
		c.shared.forget()
	}
	c.audit(r, a, actor, err)
	return done, err
}

func (c *Console) allow(r *http.Request, a Action) (actor string, err error) {
	if !c.config.AllowActions {
		return "", &refusedError{"This console only reads: Config.AllowActions is not set."}
	}
	actor, err = c.config.Authorize(r, a)
	if forged := c.guard.form(r); forged != nil {
		return actor, forged
	}
	if err != nil {
		return actor, &refusedError{"You may not do that: " + err.Error()}
	}
	return actor, nil
}

func parseAction(form url.Values) (Action, doer, error) {
	a := Action{
		Name: form.Get("action"), Group: form.Get("group"), Topic: form.Get("topic"), Aggregate: aggregate.ID{Type: form.Get("type"), Value: form.Get("id")},
		Reason: form.Get("reason"), EventType: form.Get("event_type"), Model: form.Get("model"), Row: form.Get("row"), To: form.Get("to"),
	}
	if before := form.Get("before"); before != "" {
		var err error
		if a.before, err = time.Parse(time.RFC3339Nano, before); err != nil {
			return a, doer{}, &requestError{"The form does not say when its page was read."}
		}
	}
	if a.at = form.Get("at"); a.To == "at" {
		a.To = a.at
	}
	d, known := actions[a.Name]
	if !known {
		return a, d, &requestError{"There is no action " + strconv.Quote(a.Name) + "."}
	}
	if text := form.Get("number"); text != "" || d.numbered {
		var err error
		if a.Number, err = strconv.ParseUint(text, 10, 64); err != nil {
			return a, d, &requestError{"The number is " + strconv.Quote(text) + ": enter a number."}
		}
	}
	return a, d, nil
}

// audit logs an action, with the outcome "done", "refused" or "failed".
func (c *Console) audit(r *http.Request, a Action, actor string, err error) {
	fields := watermill.LogFields{"action": logText(a.Name), "actor": logText(actor), "remote_addr": r.RemoteAddr, "outcome": "done", "at": c.now().UTC().Format(time.RFC3339)}
	for name, value := range map[string]string{
		"group": a.Group, "topic": a.Topic, "aggregate_type": a.Aggregate.Type, "aggregate_id": a.Aggregate.Value, "model": a.Model, "row": a.Row,
		"reason": a.Reason, "event_type": a.EventType, "to": a.To,
	} {
		if value != "" {
			fields[name] = logText(value)
		}
	}
	if a.Number != 0 || a.Name == "reset-aggregate" {
		fields["number"] = a.Number
	}
	if err != nil {
		fields["outcome"], fields["error"] = "failed", logText(err.Error())
		if errors.As(err, new(*refusedError)) || errors.As(err, new(*requestError)) {
			fields["outcome"] = "refused"
		}
	}
	c.config.Logger.Info("Console action", fields)
}
