package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

// processLine is a process that has begun and has not ended.
type processLine struct {
	Kind      string        `json:"kind"` // "process", "unlisted"
	Process   aggregateName `json:"process"`
	Begun     string        `json:"begun,omitempty"`
	Seconds   float64       `json:"seconds,omitempty"` // time since Begun
	Version   uint64        `json:"version,omitempty"`
	Event     string        `json:"event,omitempty"` // type of the last event
	EventAt   string        `json:"event_at,omitempty"`
	DeletedAt string        `json:"deleted_at,omitempty"`
	Snapshot  *snapshotLine `json:"snapshot,omitempty"`
	output.Payload
	Undecoded bool   `json:"undecoded,omitempty"` // the payload is encrypted
	Failure   string `json:"failure,omitempty"`   // why the process could not be read
}

// state returns the state in one line, or the reason why it is not shown.
func (l *processLine) state() string {
	switch {
	case l.Failure != "":
		return "(" + l.Failure + ")"
	case l.DeletedAt != "":
		return "(deleted at " + l.DeletedAt + ")"
	case l.Snapshot == nil:
		return "(no snapshot)"
	case l.Undecoded:
		return "(" + l.Snapshot.Encoding + ", " + output.Bytes(l.Snapshot.Bytes) + ")"
	case l.Snapshot.Number != l.Version:
		return fmt.Sprintf("(of event %s) %s", output.Count(l.Snapshot.Number), l.Payload)
	}
	return l.Payload.String()
}

var processColumns = []output.Column[processLine]{
	{Name: "PROCESS", Cell: func(l processLine) string { return l.Process.Type + " " + l.Process.Value }},
	{Name: "BEGUN", Cell: func(l processLine) string { return l.Begun }},
	{Name: "AGE", Cell: func(l processLine) string {
		return time.Duration(l.Seconds * float64(time.Second)).Round(time.Second).String()
	}},
	{Name: "EVENTS", Cell: func(l processLine) string { return output.Count(l.Version) }},
	{Name: "LAST", Cell: func(l processLine) string { return l.Event }},
	{Name: "AT", Cell: func(l processLine) string { return l.EventAt }},
	{Name: "STATE", Cell: func(l processLine) string { return l.state() }},
}

func (a *app) runOpen(ctx context.Context, query process.BacklogQuery, limit int) error {
	b, err := a.backlog(ctx)
	if err != nil {
		return err
	}
	oldest, found, err := oldestOpen(ctx, b, query, limit)
	if err != nil {
		return explainBacklog(err)
	}
	if found == 0 {
		return a.nothing(ctx, query, noneOpen(query))
	}
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	rows := output.NewRows(a.env.Out, a.json, processColumns...)
	for _, p := range oldest {
		line, err := a.describeProcess(ctx, j, p)
		if err != nil {
			return errors.Join(rows.Flush(), err)
		}
		if err := rows.Print(line); err != nil {
			return err
		}
	}
	if err := rows.Flush(); err != nil {
		return err
	}
	if found > len(oldest) {
		a.note("The oldest %s of %s open processes; --limit shows more.", output.Count(len(oldest)), output.Count(found))
	}
	return nil
}

// noneOpen returns the text for a query without open processes.
func noneOpen(query process.BacklogQuery) string {
	what := "process"
	switch {
	case query.ID != "":
		what = fmt.Sprintf("process %q of type %q", query.ID, query.Type)
	case query.Type != "":
		what = fmt.Sprintf("process of type %q", query.Type)
	}
	if !query.Before.IsZero() {
		what += " that began before " + output.Time(query.Before)
	}
	return "No " + what + " is open."
}

// oldestOpen returns the open processes that began first, up to limit, or all if limit is 0, and
// the number of all open processes.
func oldestOpen(ctx context.Context, b *process.Backlog, query process.BacklogQuery, limit int) (oldest []process.OpenProcess, found int, err error) {
	trim := func() {
		slices.SortStableFunc(oldest, func(a, b process.OpenProcess) int { return a.Begun.Compare(b.Begun) })
		if limit > 0 && len(oldest) > limit {
			oldest = slices.Delete(oldest, limit, len(oldest))
		}
	}
	for p, err := range b.OpenProcesses(ctx, query) {
		if err != nil {
			return nil, 0, err
		}
		found++
		if oldest = append(oldest, p); limit > 0 && len(oldest) >= 2*limit {
			trim()
		}
	}
	trim()
	return oldest, found, nil
}

// describeProcess reads the version, state and last event of a process. If only this process cannot
// be read, the error is part of the line.
func (a *app) describeProcess(ctx context.Context, j *journal.Journal, p process.OpenProcess) (processLine, error) {
	l := processLine{Kind: "process", Process: nameOf(p.Process), Begun: output.Time(p.Begun), Seconds: max(a.env.Now().Sub(p.Begun), 0).Seconds()}
	head, err := j.Head(ctx, p.Process)
	if errors.As(err, new(*journal.EncodingError)) {
		l.Undecoded = true
		head, err = j.Raw().Head(ctx, p.Process)
	}
	if err == nil {
		l.Version, l.DeletedAt = head.Version, output.Time(head.DeletedAt)
		if s := head.Snapshot; s != nil {
			l.Snapshot = &snapshotLine{Number: s.Number, Schema: s.Schema, Bytes: len(s.Payload), Encoding: s.Encoding}
			if !l.Undecoded || a.json {
				l.Payload = output.PayloadOf(s.Payload)
			}
		}
		if l.DeletedAt != "" {
			return l, nil
		}
		for r, problem := range j.Raw().Events(ctx, p.Process, head.Version, head.Version) {
			if err = problem; err == nil {
				l.Event, l.EventAt = r.EventType, output.Time(r.OccurredAt)
			}
		}
	}
	if errors.Is(err, journal.ErrNotFound) || errors.As(err, new(*journal.CorruptItemError)) {
		l.Failure, err = err.Error(), nil
	}
	return l, err
}

func (a *app) unlistProcess() *cobra.Command {
	return &cobra.Command{
		Use:   "unlist TYPE ID [flags]",
		Short: "Remove a process from the list of open processes",
		Long: `Remove a process from the list of open processes, for example because it was deleted from the journal,
or because a later version of its definition says that it has ended. Nothing else of the process
changes. If the process continues, it is not listed again.`,
		Example: "  millrace process unlist order-saga o1",
		Args:    wants("TYPE", "ID"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			id, err := aggregate.NewID(args[0], args[1])
			if err != nil {
				return wrongUsage("%v", err)
			}
			b, err := a.backlog(cmd.Context())
			if err != nil {
				return err
			}
			if err := b.Unlist(cmd.Context(), id); err != nil {
				return explainBacklog(err)
			}
			if a.json {
				return output.NewEncoder(a.env.Out).Encode(processLine{Kind: "unlisted", Process: nameOf(id)})
			}
			_, err = fmt.Fprintf(a.env.Out, "%s %s is not listed any more\n", printable.Text(id.Type), printable.Text(id.Value))
			return err
		}),
	}
}
