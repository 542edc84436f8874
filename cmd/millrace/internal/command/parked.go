package command

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// behindLine is an aggregate that holds up a group: it is blocked or parked.
type behindLine struct {
	Kind      string        `json:"kind"` // "behind"
	Group     string        `json:"group"`
	Aggregate aggregateName `json:"aggregate"`
	Next      uint64        `json:"next"` // number of the next event to handle
	Head      uint64        `json:"head"` // number of the last known event
	// State is "parked", "failed", "slow" if no attempt at the event has failed, or "waiting" if it
	// is not listed as blocked or parked.
	State string `json:"state"`
	// ParkedAt is the time at which the aggregate was parked. FailedAt is the time of the last
	// known failed attempt, if it is not parked. Failed is the number of the failed event.
	ParkedAt string `json:"parked_at,omitempty"`
	FailedAt string `json:"failed_at,omitempty"`
	Failed   uint64 `json:"failed,omitempty"`
	// Type is the type of the failed event. The command behind does not set it. It is empty if the
	// event cannot be read.
	Type   string `json:"type,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// newBehindLine returns the line of an aggregate. unfailed is its state if no attempt has failed.
func newBehindLine(group string, b groups.BehindAggregate, unfailed string) behindLine {
	l := behindLine{Kind: "behind", Group: group, Aggregate: nameOf(b.Aggregate), Next: b.Next, Head: b.Head, State: unfailed}
	if p := b.Parked; p != nil {
		l.State = "parked"
		l.ParkedAt, l.Failed, l.Type, l.Reason = output.Time(p.At), p.Number, p.EventType, p.Reason
	}
	if f := b.Failure; f != nil {
		l.State = "failed"
		l.FailedAt, l.Failed, l.Reason = output.Time(f.At), f.Number, f.Reason
	}
	return l
}

// listedColumns are the columns of all lists of aggregates.
var listedColumns = []output.Column[behindLine]{
	{Name: "AGGREGATE", Cell: func(b behindLine) string { return b.Aggregate.Value }},
	{Name: "NEXT", Cell: func(b behindLine) string {
		if b.Next == 0 {
			return "-"
		}
		return strconv.FormatUint(b.Next, 10)
	}},
	{Name: "HEAD", Cell: func(b behindLine) string { return strconv.FormatUint(b.Head, 10) }},
	{Name: "PARKED AT", Cell: func(b behindLine) string { return orDash(b.ParkedAt) }},
	{Name: "REASON", Cell: func(b behindLine) string { return b.Reason }},
}

// behindColumns are the columns of aggregates that hold up a group.
var behindColumns = slices.Insert(slices.Clone(listedColumns), 3,
	output.Column[behindLine]{Name: "STATE", Cell: func(b behindLine) string { return b.State }},
	output.Column[behindLine]{Name: "FAILED AT", Cell: func(b behindLine) string { return orDash(b.FailedAt) }})

// parkedColumns are the columns of parked aggregates.
var parkedColumns = slices.Insert(slices.Clone(listedColumns), 3,
	output.Column[behindLine]{Name: "TYPE", Cell: func(b behindLine) string { return orDash(b.Type) }})

func (a *app) behind() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "behind GROUP TOPIC [flags]",
		Short: "List the aggregates that hold up a group",
		Long: `List the aggregates that are blocked or parked. The group has not handled an event of them, although
it has handled later events of their shard. The event of a blocked aggregate has failed and is tried
again, or it has not failed and its handler takes long. A parked aggregate waits for an operator. A
blocked aggregate is listed after subscriber.Timing.BehindAfter, if the shard has later events.
--all lists all aggregates with events to handle.

  NEXT       number of the next event to handle
  HEAD       number of the last known event
  STATE      failed: the event NEXT has failed and is tried again; slow: no attempt has failed, and the
             handler takes long; parked; waiting (only with --all): not listed as blocked or parked
  FAILED AT  time of the last failed attempt at an event of a blocked aggregate that was known when
             the aggregate was listed, or of the first one after that
  PARKED AT  time at which the aggregate was parked
  REASON     the error, and how often the event had failed; empty if no attempt had failed`,
		Args: wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if all {
				return a.runBehind(cmd.Context(), args[0], args[1], notDone, waiting, "Group %s on %s has handled all events.")
			}
			return a.runBehind(cmd.Context(), args[0], args[1], holdingUp, slow,
				"Group %s on %s lists no blocked or parked aggregate. Aggregates that are blocked by the newest events of their shard are not listed: see --all.")
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list all aggregates with events to handle; it compares all heads with the positions, like groups --exact")
	return cmd
}

// lister yields aggregates with events that a group has not handled.
type lister func(ctx context.Context, g *groups.Group) iter.Seq2[groups.BehindAggregate, error]

// States of aggregates whose next event has not failed.
const (
	slow    = "slow"
	waiting = "waiting"
)

// holdingUp yields the aggregates that hold up the group.
func holdingUp(ctx context.Context, g *groups.Group) iter.Seq2[groups.BehindAggregate, error] {
	return g.Behind(ctx, aggregate.ID{})
}

// notDone yields all aggregates with events to handle.
func notDone(ctx context.Context, g *groups.Group) iter.Seq2[groups.BehindAggregate, error] {
	return func(yield func(groups.BehindAggregate, error) bool) {
		var all []groups.BehindAggregate
		_, err := g.Lag(ctx, groups.LagOptions{OldestOf: -1, Behind: func(b groups.BehindAggregate) { all = append(all, b) }})
		if err != nil {
			yield(groups.BehindAggregate{}, err)
			return
		}
		for _, b := range all {
			if !yield(b, nil) {
				return
			}
		}
	}
}

func (a *app) parked() *cobra.Command {
	var selected parkedSelection
	cmd := &cobra.Command{
		Use:   "parked GROUP TOPIC [flags]",
		Short: "List the parked aggregates of a group",
		Long: `List the parked aggregates, or those that --reason and --type select. The group does not try their
events until an operator decides. The command unpark makes the group try the events again. The
command skip skips the failed event, and the group continues with the next one.

TYPE is the type of the failed event. The other columns are those of the command behind.

It costs a read of the event and of the position of each listed aggregate.`,
		Example: "  millrace group parked order-history order\n  millrace group parked order-history order --reason 'connection refused'",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := notEmpty(cmd.Flags(), "reason", "type"); err != nil {
				return err
			}
			return wants("GROUP", "TOPIC")(cmd, args)
		},
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			return a.runParked(cmd.Context(), args[0], args[1], selected)
		}),
	}
	selected.registerFilters(cmd, "only those")
	return cmd
}

func (a *app) runParked(ctx context.Context, name, topic string, selected parkedSelection) error {
	g, err := a.openGroup(ctx, name, topic)
	if err != nil {
		return err
	}
	none, err := a.printBehind(name, g.SelectParked(ctx, selected.get()), slow, parkedColumns)
	if none && err == nil && !a.json {
		what := "no aggregate"
		if selected.narrows() {
			what = "no aggregate that --reason and --type select"
		}
		a.note("Group %s on %s has parked %s.", printable.Text(name), printable.Text(topic), what)
	}
	return err
}

func (a *app) runBehind(ctx context.Context, name, topic string, list lister, unfailed, nothing string) error {
	g, err := a.openGroup(ctx, name, topic)
	if err != nil {
		return err
	}
	none, err := a.printBehind(name, list(ctx, g), unfailed, behindColumns)
	if none && err == nil && !a.json {
		a.note(nothing, printable.Text(name), printable.Text(topic))
	}
	return err
}

// printBehind prints aggregates as they are read. It reports whether there are none.
func (a *app) printBehind(name string, all iter.Seq2[groups.BehindAggregate, error], unfailed string, columns []output.Column[behindLine]) (none bool, err error) {
	rows := output.NewRows(a.env.Out, a.json, columns...)
	none = true
	for b, err := range all {
		if err != nil {
			return none, errors.Join(rows.Flush(), err)
		}
		none = false
		if err := rows.Print(newBehindLine(name, b, unfailed)); err != nil {
			return none, err
		}
	}
	return none, rows.Flush()
}

// editedLine reports an edit of an aggregate of a group.
type editedLine struct {
	Kind      string        `json:"kind"` // "unparked", "skipped", "reset", "forgotten", "retried"
	Group     string        `json:"group"`
	Aggregate aggregateName `json:"aggregate"`
	// Number is the event whose record was deleted, or the event that is retried.
	Number uint64 `json:"number,omitempty"`
	// Next is the number of the next event to handle. It is left out if it did not change.
	Next uint64 `json:"next,omitempty"`
}

func (a *app) printEdited(l editedLine) error {
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(l)
	}
	name := printable.Text(l.Aggregate.Type) + " " + printable.Text(l.Aggregate.Value)
	text := fmt.Sprintf("%s %s of group %s", l.Kind, name, printable.Text(l.Group))
	switch {
	case l.Kind == "retried":
		text = fmt.Sprintf("retrying event %d of %s for group %s", l.Number, name, printable.Text(l.Group))
	case l.Number != 0:
		text = fmt.Sprintf("%s that group %s skipped event %d of %s", l.Kind, printable.Text(l.Group), l.Number, name)
	case l.Next != 0:
		text += fmt.Sprintf("; the next event is %d", l.Next)
	}
	_, err := fmt.Fprintln(a.env.Out, text)
	return err
}

func (a *app) unpark() *cobra.Command {
	var selected parkedSelection
	cmd := &cobra.Command{
		Use:   "unpark GROUP TOPIC (ID | --all) [flags]",
		Short: "Try the events of parked aggregates again",
		Long: `Make the group try the events of a parked aggregate again, or with --all the events of all parked
aggregates. --reason and --type select some of them.

--all takes each shard with such aggregates from its owner once, and costs one write unit for each
aggregate. If it ends early, run it again for the rest. --dry-run shows the number of aggregates, with
some examples, and edits none. With --json it shows all of them.`,
		Example: "  millrace group unpark order-history order 42\n  millrace group unpark order-history order --all --reason 'connection refused' --dry-run",
		Args:    selected.wants("ID"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if selected.all {
				e := bulkEdit{name: args[0], topic: args[1], selected: selected, kind: "unparked", edit: (*groups.Group).UnparkAll}
				if selected.dryRun {
					return a.dryRun(cmd.Context(), e)
				}
				return a.editAll(cmd.Context(), e)
			}
			id, err := aggregate.NewID(args[1], args[2])
			if err != nil {
				return wrongUsage("%v", err)
			}
			g, err := a.openGroups(cmd.Context())
			if err != nil {
				return err
			}
			if err := g.Unpark(cmd.Context(), args[0], id); err != nil {
				return err
			}
			return a.printEdited(editedLine{Kind: "unparked", Group: args[0], Aggregate: nameOf(id)})
		}),
	}
	selected.register(cmd, "unpark")
	return cmd
}

func (a *app) resetAggregate() *cobra.Command {
	yes := false
	var replay func() groups.Option
	cmd := &cobra.Command{
		Use:   "reset-aggregate GROUP TOPIC ID NUMBER [flags]",
		Short: "Set the position of a group in one aggregate",
		Long: `Set the position of a group in an aggregate. NUMBER is the last event that counts as handled: 0 means
that the group begins with the first event, and the aggregate's version skips all its events. Later
events are handled again, and their records as skipped events are deleted. The command also unparks
the aggregate.`,
		Args: wants("GROUP", "TOPIC", "ID", "NUMBER"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			id, number, err := eventOf(args[1], args[2], args[3])
			if err != nil {
				return err
			}
			g, err := a.openGroups(cmd.Context(), replay())
			if err != nil {
				return err
			}
			what := fmt.Sprintf("Group %s continues with event %d of %s %s.", args[0], number+1, id.Type, id.Value)
			if err := a.confirm(cmd.Context(), yes, args[0], what); err != nil {
				return err
			}
			if err := g.ResetAggregate(cmd.Context(), args[0], id, number); err != nil {
				return err
			}
			return a.printEdited(editedLine{Kind: "reset", Group: args[0], Aggregate: nameOf(id), Next: number + 1})
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	replay = replayFlag(cmd)
	return cmd
}

func eventOf(topic, value, number string) (aggregate.ID, uint64, error) {
	id, err := aggregate.NewID(topic, value)
	if err != nil {
		return id, 0, wrongUsage("%v", err)
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return id, 0, wrongUsage("%q is not the number of an event", number)
	}
	return id, n, nil
}
