package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// bulkLine reports how many parked aggregates of a group were edited.
type bulkLine struct {
	Kind       string `json:"kind"` // "unparked_all", "skipped_all"
	Group      string `json:"group"`
	Topic      string `json:"topic"`
	Aggregates int    `json:"aggregates"`
	DryRun     bool   `json:"dry_run,omitempty"` // nothing was edited
}

// parkedSelection holds --all and the flags that filter it.
type parkedSelection struct {
	all, dryRun       bool
	reason, eventType string
}

// narrows reports whether it has filters.
func (p *parkedSelection) narrows() bool { return p.reason != "" || p.eventType != "" }

func (p *parkedSelection) get() groups.Selection {
	return groups.Selection{Reason: p.reason, EventType: p.eventType}
}

func (p *parkedSelection) register(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&p.all, "all", false, what+" all parked aggregates of the group, instead of one")
	cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "with --all: only show the number of aggregates, with some examples")
	p.registerFilters(cmd, "with --all: only those")
}

func (p *parkedSelection) registerFilters(cmd *cobra.Command, those string) {
	cmd.Flags().StringVar(&p.reason, "reason", "", those+" with this `text` in the reason")
	cmd.Flags().StringVar(&p.eventType, "type", "", those+" whose failed event has this `type`")
}

// wants checks the arguments of commands that take either one aggregate or --all.
func (p *parkedSelection) wants(one ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := notEmpty(cmd.Flags(), "reason", "type"); err != nil {
			return err
		}
		switch {
		case p.all && len(args) > 2:
			return fmt.Errorf("%s does not take the argument %q with --all", cmd.Name(), args[2])
		case p.all:
			return wants("GROUP", "TOPIC")(cmd, args)
		case p.narrows():
			return errors.New("--reason and --type need --all: they select among all parked aggregates")
		case p.dryRun:
			return errors.New("--dry-run needs --all")
		case len(args) == 2:
			return fmt.Errorf("%s needs %s, or --all for all parked aggregates", cmd.Name(), joined(one))
		}
		return wants(append([]string{"GROUP", "TOPIC"}, one...)...)(cmd, args)
	}
}

// bulkEdit is an edit of all selected parked aggregates of a group.
type bulkEdit struct {
	name, topic string
	selected    parkedSelection
	kind        string // kind of a line: "unparked", "skipped"
	edit        func(*groups.Group, context.Context, groups.Selection) (int, error)
	known       int // number of selected aggregates before the edit; 0 if it was not counted
}

func (e bulkEdit) skips() bool { return e.kind == "skipped" }

// examples is the number of aggregates in a preview.
const examples = 5

// preview counts the aggregates of an edit, and returns the first of them. If show is not nil, it
// calls show for each aggregate.
func (a *app) preview(ctx context.Context, g *groups.Group, e bulkEdit, show func(groups.BehindAggregate) error) (n int, some []groups.BehindAggregate, err error) {
	one, err := g.Status(ctx)
	switch {
	case err != nil:
		return 0, nil, err
	case e.skips() && one.ExternalPositions:
		return 0, nil, fmt.Errorf("skip failed events of consumer group %q on topic %q: %w", e.name, e.topic, groups.ErrExternalPositions)
	}
	progress := a.showProgress()
	defer progress.Done()
	for b, err := range g.SelectParked(ctx, e.selected.get()) {
		switch {
		case err != nil:
			return n, some, err
		case e.skips() && b.Next != b.Parked.Number:
			continue // the position is beyond the failed event
		}
		n++
		if len(some) < examples {
			some = append(some, b)
		}
		progress.Show(func(time.Duration) string {
			return "found " + output.Counted(n, "parked aggregate", "parked aggregates")
		})
		if show != nil {
			if err := show(b); err != nil {
				return n, some, err
			}
		}
	}
	return n, some, nil
}

// dryRun prints the number of aggregates of an edit, with examples, and edits none. As JSON it
// prints all of them.
func (a *app) dryRun(ctx context.Context, e bulkEdit) error {
	g, err := a.openGroup(ctx, e.name, e.topic)
	if err != nil {
		return err
	}
	rows := output.NewRows(a.env.Out, a.json, parkedColumns...)
	show := func(b groups.BehindAggregate) error { return rows.Print(newBehindLine(e.name, b, slow)) }
	var each func(groups.BehindAggregate) error
	if a.json {
		each = show
	}
	n, some, err := a.preview(ctx, g, e, each)
	if err != nil {
		return err
	}
	line := e.line(n)
	line.DryRun = true
	if err := a.printBulk(line, e); err != nil || a.json {
		return err
	}
	for _, b := range some {
		if err := show(b); err != nil {
			return err
		}
	}
	err = rows.Flush()
	if err == nil && n > len(some) {
		a.note("%s more: the command parked lists all of them.", output.Count(n-len(some)))
	}
	return err
}

// confirmAll asks for confirmation of an edit that cannot be undone. It shows the number of
// aggregates and some of them. With --yes it does not count and ask.
func (a *app) confirmAll(ctx context.Context, e bulkEdit, yes bool) error {
	what := fmt.Sprintf("Group %s will never handle the failed events of its parked aggregates on %s.", e.name, e.topic)
	if !yes && a.env.InTerminal {
		g, err := a.openGroup(ctx, e.name, e.topic)
		if err != nil {
			return err
		}
		n, some, err := a.preview(ctx, g, e, nil)
		if err != nil {
			return err
		}
		if n == 0 { // an aggregate that is parked from now on is not part of the edit
			return a.printEditedAll(e, 0)
		}
		e.known = n
		what = fmt.Sprintf("Group %s will never handle the failed events of %s on %s:%s", e.name,
			output.Counted(n, "parked aggregate", "parked aggregates"), e.topic, listed(n, some))
	}
	if err := a.confirm(ctx, yes, e.name, what); err != nil {
		return err
	}
	return a.editAll(ctx, e)
}

// listed returns a text with some of n parked aggregates, one on each line.
func listed(n int, some []groups.BehindAggregate) string {
	var list strings.Builder
	for _, b := range some {
		fmt.Fprintf(&list, "\n  event %d of %s %s", b.Parked.Number, printable.Text(b.Aggregate.Type), printable.Text(b.Aggregate.Value))
		if b.Parked.EventType != "" {
			fmt.Fprintf(&list, " (%s)", printable.Text(b.Parked.EventType))
		}
	}
	if n > len(some) {
		fmt.Fprintf(&list, "\n  and %s more", output.Count(n-len(some)))
	}
	return list.String()
}

// editAll edits the parked aggregates of a group, and prints their number, also if the edit ended
// early.
func (a *app) editAll(ctx context.Context, e bulkEdit) error {
	g, err := a.openGroup(ctx, e.name, e.topic)
	if err != nil {
		return err
	}
	progress, lines, failed := a.showProgress(), output.NewEncoder(a.env.Out), error(nil)
	n := 0
	selection := e.selected.get()
	selection.Edited = func(id aggregate.ID, number uint64) {
		n++
		progress.Show(func(time.Duration) string { return e.progress(n) })
		if a.json && failed == nil {
			l := editedLine{Kind: e.kind, Group: e.name, Aggregate: nameOf(id)}
			if e.skips() {
				l.Next = number + 1
			}
			failed = lines.Encode(l)
		}
	}
	n, err = e.edit(g, ctx, selection)
	progress.Done()
	if errors.Is(err, groups.ErrNoGroup) || errors.Is(err, groups.ErrExternalPositions) {
		return err
	}
	if err != nil {
		a.note("The command ended early, and has edited some aggregates. Run it again for the rest.")
	}
	if err != nil {
		return errors.Join(failed, a.printBulk(e.line(n), e), err)
	}
	return errors.Join(failed, a.printEditedAll(e, n))
}

// printEditedAll prints the number of edited aggregates.
func (a *app) printEditedAll(e bulkEdit, n int) error {
	if n == 0 {
		a.note("No parked aggregate was selected. The command parked lists them with their reasons.")
	}
	return a.printBulk(e.line(n), e)
}

func (e bulkEdit) line(n int) bulkLine {
	return bulkLine{Kind: e.kind + "_all", Group: e.name, Topic: e.topic, Aggregates: n}
}

func (e bulkEdit) progress(n int) string {
	if e.known == 0 {
		return e.kind + " " + output.Counted(n, "aggregate", "aggregates")
	}
	return fmt.Sprintf("%s %s of %s", e.kind, output.Count(n), output.Counted(max(n, e.known), "aggregate", "aggregates"))
}

func (a *app) printBulk(l bulkLine, e bulkEdit) error {
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(l)
	}
	done, what := e.kind, output.Counted(l.Aggregates, "aggregate", "aggregates")
	if e.skips() {
		what = "one event of each of " + what
	}
	end := ""
	if l.DryRun {
		done, end = map[string]string{"unparked": "would unpark", "skipped": "would skip"}[e.kind], " (dry run)"
	}
	_, err := fmt.Fprintf(a.env.Out, "%s %s of group %s on %s%s\n", done, what, printable.Text(l.Group), printable.Text(l.Topic), end)
	return err
}
