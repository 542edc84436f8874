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
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// behindLine is an aggregate that holds a group up.
type behindLine struct {
	Kind      string        `json:"kind"` // "behind"
	Group     string        `json:"group"`
	Aggregate aggregateName `json:"aggregate"`
	Next      uint64        `json:"next"` // the event that it waits with
	Head      uint64        `json:"head"` // the last one that is known
	// When it was parked, or else when an attempt failed; with which event, and why.
	ParkedAt string `json:"parked_at,omitempty"`
	FailedAt string `json:"failed_at,omitempty"`
	Failed   uint64 `json:"failed,omitempty"`
	Type     string `json:"type,omitempty"` // of that event; none from the command behind, and where the event cannot be read
	Reason   string `json:"reason,omitempty"`
}

func newBehindLine(group string, b groups.Behind) behindLine {
	l := behindLine{Kind: "behind", Group: group, Aggregate: nameOf(b.Aggregate), Next: b.Next, Head: b.Head}
	if p := b.Parked; p != nil {
		l.ParkedAt, l.Failed, l.Type, l.Reason = output.Time(p.At), p.Number, p.EventType, p.Reason
	}
	if f := b.Failure; f != nil {
		l.FailedAt, l.Failed, l.Reason = output.Time(f.At), f.Number, f.Reason
	}
	return l
}

// listedColumns are those of aggregates on any list.
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

// behindColumns are those of aggregates that hold a group up.
var behindColumns = slices.Insert(slices.Clone(listedColumns), 3,
	output.Column[behindLine]{Name: "FAILED AT", Cell: func(b behindLine) string { return orDash(b.FailedAt) }})

// parkedColumns are those of aggregates that are all parked.
var parkedColumns = slices.Insert(slices.Clone(listedColumns), 3,
	output.Column[behindLine]{Name: "TYPE", Cell: func(b behindLine) string { return orDash(b.Type) }})

func (a *app) behind() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "behind GROUP TOPIC [flags]",
		Short: "List the aggregates that hold a group up",
		Long: `List the aggregates that a group is not done with though it is with later events: those that are tried again and again, and those
that are parked. One that is blocked is listed after some time (subscriber.Config.BehindAfter), once there are later events; --all shows
it at once, with all others that have events to handle.

REASON is the error of the last attempt and how many had failed. FAILED AT is when, of an aggregate that is blocked: as of when it was
listed, so later attempts do not show. Without a reason no attempt had failed by then, as where the handler takes long.`,
		Args: wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if all {
				return a.runBehind(cmd.Context(), args[0], args[1], notDone, "Group %s on %s has handled all events.")
			}
			return a.runBehind(cmd.Context(), args[0], args[1], holdingUp,
				"Group %s on %s has listed no aggregate as behind. One that is blocked by its newest events is not listed: see --all.")
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "all aggregates that have events to handle; it compares all heads with the positions, as groups --exact does")
	return cmd
}

// lister yields aggregates that a group is not done with.
type lister func(ctx context.Context, g *groups.Groups, name, topic string) iter.Seq2[groups.Behind, error]

// holdingUp yields the aggregates that hold the group up.
func holdingUp(ctx context.Context, g *groups.Groups, name, topic string) iter.Seq2[groups.Behind, error] {
	return g.Behind(ctx, name, topic, aggregate.ID{})
}

// notDone yields all aggregates that have events to handle.
func notDone(ctx context.Context, g *groups.Groups, name, topic string) iter.Seq2[groups.Behind, error] {
	return func(yield func(groups.Behind, error) bool) {
		var all []groups.Behind
		_, err := g.Lag(ctx, name, topic, groups.LagOptions{OldestOf: -1, Behind: func(b groups.Behind) { all = append(all, b) }})
		if err != nil {
			yield(groups.Behind{}, err)
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
		Short: "List the aggregates that a group has given up until someone decides",
		Long: `List the parked aggregates, or those that --reason and --type select. TYPE is that of the event that failed. unpark has their events
tried again, skip passes over the one that failed, and the events behind it come.

It costs a read of the event and of the position of each aggregate that it lists.`,
		Example: "  millrace group parked order-history order\n  millrace group parked order-history order --reason 'connection refused'",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := notEmpty(cmd); err != nil {
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
	g, err := a.openGroups(ctx)
	if err != nil {
		return err
	}
	none, err := a.printBehind(name, g.SelectParked(ctx, name, topic, selected.get()), parkedColumns)
	if none && err == nil && !a.json {
		what := "no aggregate"
		if selected.narrows() {
			what = "no aggregate that --reason and --type select"
		}
		a.note("Group %s on %s has parked %s.", output.Clean(name), output.Clean(topic), what)
	}
	return err
}

func (a *app) runBehind(ctx context.Context, name, topic string, list lister, nothing string) error {
	g, err := a.openGroups(ctx)
	if err != nil {
		return err
	}
	none, err := a.printBehind(name, list(ctx, g, name, topic), behindColumns)
	if none && err == nil && !a.json {
		a.note(nothing, output.Clean(name), output.Clean(topic))
	}
	return err
}

// printBehind prints aggregates as they come. It reports whether there are none.
func (a *app) printBehind(name string, all iter.Seq2[groups.Behind, error], columns []output.Column[behindLine]) (none bool, err error) {
	rows := output.NewRows(a.env.Out, a.json, columns...)
	none = true
	for b, err := range all {
		if err != nil {
			return none, errors.Join(rows.Flush(), err)
		}
		none = false
		if err := rows.Print(newBehindLine(name, b)); err != nil {
			return none, err
		}
	}
	return none, rows.Flush()
}

// editedLine reports what was done to an aggregate of a group.
type editedLine struct {
	Kind      string        `json:"kind"` // "unparked", "skipped", "reset", "forgotten", "retried"
	Group     string        `json:"group"`
	Aggregate aggregateName `json:"aggregate"`
	Number    uint64        `json:"number,omitempty"` // of the event whose record was forgotten, or that is retried
	Next      uint64        `json:"next,omitempty"`   // the event that comes next; none where it was not changed
}

func (a *app) printEdited(l editedLine) error {
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(l)
	}
	name := l.Aggregate.Type + " " + output.Clean(l.Aggregate.Value)
	text := fmt.Sprintf("%s %s of group %s", l.Kind, name, output.Clean(l.Group))
	switch {
	case l.Kind == "retried":
		text = fmt.Sprintf("retrying event %d of %s for group %s", l.Number, name, output.Clean(l.Group))
	case l.Number != 0:
		text = fmt.Sprintf("%s that group %s skipped event %d of %s", l.Kind, output.Clean(l.Group), l.Number, name)
	case l.Next != 0:
		text += fmt.Sprintf("; event %d comes next", l.Next)
	}
	_, err := fmt.Fprintln(a.env.Out, text)
	return err
}

func (a *app) unpark() *cobra.Command {
	var selected parkedSelection
	cmd := &cobra.Command{
		Use:   "unpark GROUP TOPIC (ID | --all) [flags]",
		Short: "Have the events of parked aggregates tried again",
		Long: `Have the events of a parked aggregate tried again, or with --all those of all parked aggregates, of which --reason and --type select some.
--all takes each shard that has such aggregates from its owner once, and costs one write unit for each aggregate. An edit that ends
early keeps what it has done; run it again for the rest. --dry-run shows how many aggregates that are, with some examples, and edits none;
with --json it shows all of them.`,
		Example: "  millrace group unpark order-history order 42\n  millrace group unpark order-history order --all --reason 'connection refused' --dry-run",
		Args:    selected.wants("ID"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if selected.all {
				e := bulkEdit{name: args[0], topic: args[1], selected: selected, kind: "unparked", edit: (*groups.Groups).UnparkAll}
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
	cmd := &cobra.Command{
		Use:   "reset-aggregate GROUP TOPIC ID NUMBER [flags]",
		Short: "Put a group anywhere in the history of one aggregate",
		Long: `Have a group go on in an aggregate as if the event with that number had been the last one that it handled: 0 is the beginning, the
aggregate's version skips all that it has. It also unparks the aggregate. Records of skipped events that come again are deleted.`,
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
			what := fmt.Sprintf("Group %s goes on with event %d of %s %s.", args[0], number+1, id.Type, id.Value)
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
	return cmd
}

func eventOf(topic, value, number string) (aggregate.ID, uint64, error) {
	id, err := aggregate.NewID(topic, value)
	if err != nil {
		return id, 0, wrongUsage("%v", err)
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return id, 0, wrongUsage("%q is no number of an event", number)
	}
	return id, n, nil
}
