package command

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// skippedLine is the record of an event that a group has skipped or deferred.
type skippedLine struct {
	Kind      string        `json:"kind"` // "skipped_event"
	Group     string        `json:"group"`
	Aggregate aggregateName `json:"aggregate"`
	Number    uint64        `json:"number"`
	Type      string        `json:"type"` // empty if the event could not be read
	SkippedAt string        `json:"skipped_at"`
	Due       string        `json:"due,omitempty"`      // next attempt at a deferred event
	Attempts  int           `json:"attempts,omitempty"` // failed attempts at a deferred event
	Reason    string        `json:"reason"`
}

var skippedColumns = []output.Column[skippedLine]{
	{Name: "AGGREGATE", Cell: func(s skippedLine) string { return s.Aggregate.Value }},
	{Name: "EVENT", Cell: func(s skippedLine) string { return strconv.FormatUint(s.Number, 10) }},
	{Name: "TYPE", Cell: func(s skippedLine) string {
		if s.Type == "" {
			return "-"
		}
		return s.Type
	}},
	{Name: "SKIPPED AT", Cell: func(s skippedLine) string { return s.SkippedAt }},
	{Name: "RETRY AT", Cell: func(s skippedLine) string {
		if s.Due == "" {
			return "-"
		}
		return s.Due
	}},
	{Name: "REASON", Cell: func(s skippedLine) string { return s.Reason }},
}

func (a *app) skip() *cobra.Command {
	var selected parkedSelection
	yes := false
	cmd := &cobra.Command{
		Use:   "skip GROUP TOPIC (ID NUMBER | --all) [flags]",
		Short: "Skip events, so that the group does not handle them",
		Long: `Skip the event NUMBER of an aggregate: the group does not handle it, and continues with the next
event. NUMBER must be the next event of the aggregate, as behind and parked show it, so that a
repeated command does not skip another event. The command also unparks the aggregate. The command
skipped lists the event afterwards.

--all skips the failed event of each parked aggregate. --reason and --type select some of them. The
command shows the number of aggregates before it asks. If it ends early, run it again for the rest.
--dry-run shows the number, with some examples, and edits none. With --json it shows all of them.`,
		Example: "  millrace group skip order-history order 42 7\n  millrace group skip order-history order --all --type order.imported.v1 --dry-run",
		Args:    selected.wants("ID", "NUMBER"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if selected.all {
				e := bulkEdit{name: args[0], topic: args[1], selected: selected, kind: "skipped", edit: (*groups.Group).SkipAll}
				if selected.dryRun {
					return a.dryRun(cmd.Context(), e)
				}
				return a.confirmAll(cmd.Context(), e, yes)
			}
			id, number, err := eventOf(args[1], args[2], args[3])
			if err != nil {
				return err
			}
			g, err := a.openGroups(cmd.Context())
			if err != nil {
				return err
			}
			if err := g.Skip(cmd.Context(), args[0], id, number); err != nil {
				return err
			}
			return a.printEdited(editedLine{Kind: "skipped", Group: args[0], Aggregate: nameOf(id), Next: number + 1})
		}),
	}
	selected.register(cmd, "skip the failed event of")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask, with --all")
	return cmd
}

func (a *app) skipped() *cobra.Command {
	return &cobra.Command{
		Use:   "skipped GROUP TOPIC [flags]",
		Short: "List the events that a group has skipped or deferred",
		Long: `List the records of events that the group has skipped or deferred: events that kept failing
(subscriber.Skip), deferred events with the time of their next attempt (subscriber.Defer), and events
that an operator has skipped.

  retry-skipped    tries an event again by itself
  reset-aggregate  handles the event and all later events of the aggregate again, which deletes the
                   record
  forget-skipped   only deletes the record`,
		Args: wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error { return a.runSkipped(cmd.Context(), args[0], args[1]) }),
	}
}

func (a *app) runSkipped(ctx context.Context, name, topic string) error {
	g, err := a.openGroup(ctx, name, topic)
	if err != nil {
		return err
	}
	rows := output.NewRows(a.env.Out, a.json, skippedColumns...)
	none := true
	for e, err := range g.Skipped(ctx, aggregate.ID{}, 0) {
		if err != nil {
			return errors.Join(rows.Flush(), err)
		}
		none = false
		line := skippedLine{
			Kind: "skipped_event", Group: name, Aggregate: nameOf(e.Aggregate), Number: e.Number, Type: e.EventType,
			SkippedAt: output.Time(e.At), Attempts: e.Attempts, Reason: e.Reason,
		}
		if !e.Due.IsZero() {
			line.Due = output.Time(e.Due)
		}
		if err := rows.Print(line); err != nil {
			return err
		}
	}
	if none && !a.json {
		a.note("Group %s on %s has skipped no event.", printable.Text(name), printable.Text(topic))
	}
	return rows.Flush()
}

func (a *app) forgetSkipped() *cobra.Command {
	return &cobra.Command{
		Use:   "forget-skipped GROUP TOPIC ID NUMBER [flags]",
		Short: "Delete the record of an event that was skipped",
		Long: `Delete the record of a skipped event, for example after its effects were corrected by hand. The event
is not tried again.`,
		Args: wants("GROUP", "TOPIC", "ID", "NUMBER"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			id, number, err := eventOf(args[1], args[2], args[3])
			if err != nil {
				return err
			}
			g, err := a.openGroups(cmd.Context())
			if err != nil {
				return err
			}
			if err := g.ForgetSkipped(cmd.Context(), args[0], id, number); err != nil {
				return err
			}
			return a.printEdited(editedLine{Kind: "forgotten", Group: args[0], Aggregate: nameOf(id), Number: number})
		}),
	}
}
