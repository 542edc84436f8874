package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// removedLine reports a group that was removed, or what was deleted of one.
type removedLine struct {
	Kind  string `json:"kind"` // "removed", "cleaned_up"
	Group string `json:"group"`
	Topic string `json:"topic"`
	Rows  int    `json:"rows"`
}

// group is the parent of what works on one group.
func (a *app) group() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group COMMAND",
		Short: "Pause, resume, reset or remove a consumer group, and see to what is parked or skipped",
		Long: `Work on one consumer group on one topic. Its members need not be stopped; they learn of it within a quarter of their
LeaseDuration, 2.5 seconds by default.

To fill a read model anew: pause the group with --wait, clear the read model, reset the group to the beginning, resume it.`,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.pause(), a.resume(), a.reset(), a.remove(), a.cleanUp(), a.behind(), a.parked(), a.unpark(), a.skip(), a.skipped(),
		a.retrySkipped(), a.forgetSkipped(), a.resetAggregate(), a.reconcile())
	for _, sub := range cmd.Commands() {
		sub.RunE = a.aboutTopic(1, sub.RunE)
	}
	return cmd
}

func (a *app) pause() *cobra.Command {
	wait := false
	cmd := &cobra.Command{
		Use:   "pause GROUP TOPIC [flags]",
		Short: "Have a group do nothing until it is resumed",
		Args:  wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			g, err := a.openGroups(cmd.Context())
			if err != nil {
				return err
			}
			if err := g.Pause(cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
			if wait {
				progress := a.showProgress()
				progress.Show(func(time.Duration) string { return "paused; waiting until nothing is out for handling" })
				err := g.WaitIdle(cmd.Context(), args[0], args[1])
				progress.Done()
				if err != nil {
					a.note("The group stays paused.")
					return err
				}
			}
			return a.showGroup(cmd.Context(), g, args[0], args[1])
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until members have stopped, which a crashed one without others never does; an interrupt leaves the group paused")
	return cmd
}

func (a *app) resume() *cobra.Command {
	return &cobra.Command{
		Use:   "resume GROUP TOPIC [flags]",
		Short: "Have a paused or stopped group go on where it is",
		Args:  wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			g, err := a.openGroups(cmd.Context())
			if err != nil {
				return err
			}
			if err := g.Resume(cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
			return a.showGroup(cmd.Context(), g, args[0], args[1])
		}),
	}
}

func (a *app) reset() *cobra.Command {
	var to string
	var yes bool
	cmd := &cobra.Command{
		Use:   "reset GROUP TOPIC --to TIME [flags]",
		Short: "Have a group begin again: at the beginning, now, or at a time",
		Long: `Have a group begin again, and forget where it was: its positions, and what was parked or skipped. A paused group stays paused. The rows
from before are deleted afterwards, one write unit for each aggregate.

Handlers get the events from there on again, and their effects happen again: clear the read model before, or its counts double.
Members that work go on where they were until they learn of it: so pause the group with --wait first.`,
		Example: "  millrace group reset order-history order --to beginning\n  millrace group reset order-history order --to 2025-06-01T00:00:00Z --yes",
		Args:    wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return wrongUsage("reset needs --to: beginning, now, a duration before now, or RFC 3339")
			}
			begin, err := parseTo(to, a.env.Now())
			if err != nil {
				return wrongUsage("--to: %v", err)
			}
			return a.runReset(cmd.Context(), args[0], args[1], begin, to, yes)
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "`time` of the first event: beginning, now, a duration before now, or RFC 3339")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func parseTo(text string, now time.Time) (subscriber.Start, error) {
	at, err := parseMoment(text, now)
	switch {
	case err != nil:
		return subscriber.Start{}, err
	case at.IsZero():
		return subscriber.Beginning(), nil
	case text == "now":
		return subscriber.Now(), nil
	}
	return subscriber.At(at), nil
}

func (a *app) runReset(ctx context.Context, name, topic string, to subscriber.Start, text string, yes bool) error {
	g, err := a.openGroups(ctx)
	if err != nil {
		return err
	}
	if _, err := g.Get(ctx, name, topic); err != nil {
		return err
	}
	if err := a.confirm(ctx, yes, name, fmt.Sprintf("Group %s forgets where it is on %s, and begins again at %s.", name, topic, text)); err != nil {
		return err
	}
	progress, count := a.rowProgress()
	err = g.Reset(ctx, name, topic, to, count)
	progress.Done()
	if err != nil && !errors.Is(err, groups.ErrLeftovers) {
		return err
	}
	return errors.Join(a.showGroup(ctx, g, name, topic), err)
}

func (a *app) remove() *cobra.Command {
	var force, yes bool
	cmd := &cobra.Command{
		Use:   "remove GROUP TOPIC [flags]",
		Short: "Remove a group and all that it has stored",
		Long: `Remove a group and all its rows, one write unit for each aggregate. A group of that name that subscribes later begins as a new one.
Members have to be closed before; one that crashed counts until another one has missed it, and if it was the last one, --force
removes the group with it.`,
		Args: wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			return a.runRemove(cmd.Context(), args[0], args[1], force, yes)
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove it with its members; those that live begin it anew")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) runRemove(ctx context.Context, name, topic string, force, yes bool) error {
	g, err := a.openGroups(ctx)
	if err != nil {
		return err
	}
	if _, err := g.Get(ctx, name, topic); err != nil {
		return err
	}
	if err := a.confirm(ctx, yes, name, fmt.Sprintf("Group %s on %s is removed, with all that it has stored.", name, topic)); err != nil {
		return err
	}
	rows := 0
	progress, count := a.rowProgress()
	err = g.Remove(ctx, name, topic, groups.Removal{Force: force, Progress: func(n int) { rows += n; count(n) }})
	progress.Done()
	var active *groups.ActiveError
	if errors.As(err, &active) {
		return fmt.Errorf("%w; or, if they have crashed, remove the group with --force", err)
	}
	if err != nil {
		return err
	}
	return a.printRemoved(removedLine{Kind: "removed", Group: name, Topic: topic, Rows: rows})
}

func (a *app) cleanUp() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup GROUP TOPIC [flags]",
		Short: "Delete what a reset that ended early has left",
		Args:  wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			g, err := a.openGroups(cmd.Context())
			if err != nil {
				return err
			}
			rows := 0
			progress, count := a.rowProgress()
			err = g.CleanUp(cmd.Context(), args[0], args[1], func(n int) { rows += n; count(n) })
			progress.Done()
			if err != nil {
				return err
			}
			return a.printRemoved(removedLine{Kind: "cleaned_up", Group: args[0], Topic: args[1], Rows: rows})
		}),
	}
}

func (a *app) printRemoved(l removedLine) error {
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(l)
	}
	what := "Removed group"
	if l.Kind == "cleaned_up" {
		what = "Cleaned up after group"
	}
	_, err := fmt.Fprintf(a.env.Out, "%s %s on %s: %s deleted\n", what, output.Clean(l.Group), output.Clean(l.Topic), output.Counted(l.Rows, "row", "rows"))
	return err
}

// showGroup shows how a group is now, without its lag.
func (a *app) showGroup(ctx context.Context, g *groups.Groups, name, topic string) error {
	one, err := g.Get(ctx, name, topic)
	if err != nil {
		return err
	}
	return a.printGroup(newGroupLine(one))
}

// rowProgress shows how many rows have been deleted.
func (a *app) rowProgress() (*output.Progress, func(rows int)) {
	progress, all := a.showProgress(), 0
	return progress, func(rows int) {
		all += rows
		progress.Show(func(time.Duration) string { return output.Counted(all, "row", "rows") + " deleted" })
	}
}
