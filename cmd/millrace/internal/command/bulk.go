package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// bulkLine reports how many parked aggregates of a group were edited.
type bulkLine struct {
	Kind       string `json:"kind"` // "unparked_all", "skipped_all"
	Group      string `json:"group"`
	Topic      string `json:"topic"`
	Aggregates int    `json:"aggregates"`
}

// parkedSelection is --all with the flags that narrow it.
type parkedSelection struct {
	all               bool
	reason, eventType string
}

// narrows reports whether it may select less than all.
func (p *parkedSelection) narrows() bool { return p.reason != "" || p.eventType != "" }

func (p *parkedSelection) get() groups.Selection {
	return groups.Selection{Reason: p.reason, EventType: p.eventType}
}

func (p *parkedSelection) register(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&p.all, "all", false, what+" all parked aggregates of the group, in place of one")
	p.registerFilters(cmd, "with --all: only those")
}

func (p *parkedSelection) registerFilters(cmd *cobra.Command, those string) {
	cmd.Flags().StringVar(&p.reason, "reason", "", those+" with this `text` in the reason")
	cmd.Flags().StringVar(&p.eventType, "type", "", those+" whose failed event is of this `type`")
}

// notEmpty refuses filters without a text.
func notEmpty(cmd *cobra.Command) error {
	for _, name := range []string{"reason", "type"} {
		if flag := cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" {
			return fmt.Errorf("--%s is empty, which would select all; leave it out to select all", name)
		}
	}
	return nil
}

// wants is for commands that take either one aggregate or --all.
func (p *parkedSelection) wants(one ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := notEmpty(cmd); err != nil {
			return err
		}
		switch {
		case p.all && len(args) > 2:
			return fmt.Errorf("%s has no use for %q with --all", cmd.Name(), args[2])
		case p.all:
			return wants("GROUP", "TOPIC")(cmd, args)
		case p.narrows():
			return errors.New("--reason and --type need --all: they select among all parked aggregates")
		case len(args) == 2:
			return fmt.Errorf("%s wants %s, or --all for all parked aggregates", cmd.Name(), joined(one))
		}
		return wants(append([]string{"GROUP", "TOPIC"}, one...)...)(cmd, args)
	}
}

// editAll edits the parked aggregates of a group and prints how many, also of an edit that ended
// early.
func (a *app) editAll(ctx context.Context, kind, name, topic string, p parkedSelection,
	edit func(*groups.Groups, context.Context, string, string, groups.Selection) (int, error),
) error {
	g, err := a.openGroups(ctx)
	if err != nil {
		return err
	}
	progress, lines, failed := a.showProgress(), output.NewEncoder(a.env.Out), error(nil)
	n := 0
	n, err = edit(g, ctx, name, topic, groups.Selection{Reason: p.reason, EventType: p.eventType, Edited: func(id aggregate.ID, number uint64) {
		n++
		progress.Show(func(time.Duration) string { return kind + " " + output.Counted(n, "aggregate", "aggregates") })
		if a.json && failed == nil {
			l := editedLine{Kind: kind, Group: name, Aggregate: nameOf(id)}
			if kind == "skipped" {
				l.Next = number + 1
			}
			failed = lines.Encode(l)
		}
	}})
	progress.Done()
	if errors.Is(err, groups.ErrNoGroup) || errors.Is(err, groups.ErrElsewhere) {
		return err
	}
	if err != nil {
		a.note("It ended early. What is done stays so; run it again for the rest.")
	}
	if n == 0 && err == nil {
		a.note("No parked aggregate was selected. The command parked lists them with their reasons.")
	}
	return errors.Join(failed, a.printBulk(bulkLine{Kind: kind + "_all", Group: name, Topic: topic, Aggregates: n}, kind), err)
}

func (a *app) printBulk(l bulkLine, done string) error {
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(l)
	}
	what := output.Counted(l.Aggregates, "aggregate", "aggregates")
	if done == "skipped" {
		what = "one event of each of " + what
	}
	_, err := fmt.Fprintf(a.env.Out, "%s %s of group %s on %s\n", done, what, output.Clean(l.Group), output.Clean(l.Topic))
	return err
}
