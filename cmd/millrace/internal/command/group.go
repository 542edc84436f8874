package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// removedLine reports a group that was removed, or rows that were deleted.
type removedLine struct {
	Kind  string `json:"kind"` // "removed", "cleaned_up"
	Group string `json:"group"`
	Topic string `json:"topic"`
	Rows  int    `json:"rows"` // that were deleted; a removal deletes those of all removed groups
	// OldRowsUntil is the time until which old rows of the group stay.
	OldRowsUntil string `json:"old_rows_until,omitempty"`
}

// group is the parent of the commands for one group.
func (a *app) group() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "group COMMAND",
		Short: "Pause, resume, reset, await or remove a consumer group, and edit parked aggregates and skipped events",
		Long: `Operate one consumer group on one topic. Its members need not be stopped. They see changes within a
quarter of their LeaseDuration, 2.5 seconds by default.

To rebuild a read model: pause the group with --wait, clear the read model, reset the group to the
beginning, and resume it.`,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.pause(), a.resume(), a.reset(), a.remove(), a.cleanUp(), a.catchUp(), a.behind(), a.parked(), a.unpark(), a.skip(), a.skipped(),
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
		Short: "Pause a group until it is resumed",
		Args:  wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			g, err := a.openGroup(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if err := g.Pause(cmd.Context()); err != nil {
				return err
			}
			if wait {
				progress := a.showProgress()
				progress.Show(func(time.Duration) string { return "paused; waiting until no event is being handled" })
				err := g.WaitIdle(cmd.Context())
				progress.Done()
				if err != nil {
					a.note("The group stays paused.")
					return err
				}
			}
			return a.showGroup(cmd.Context(), g)
		}),
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until members have stopped; this never ends if the last member has crashed; an interrupt leaves the group paused")
	return cmd
}

func (a *app) resume() *cobra.Command {
	return &cobra.Command{
		Use:   "resume GROUP TOPIC [flags]",
		Short: "Resume a paused or stopped group at its positions",
		Args:  wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			g, err := a.openGroup(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if err := g.Resume(cmd.Context()); err != nil {
				return err
			}
			return a.showGroup(cmd.Context(), g)
		}),
	}
}

func (a *app) reset() *cobra.Command {
	var to string
	var yes bool
	var replay func() groups.Option
	cmd := &cobra.Command{
		Use:   "reset GROUP TOPIC --to TIME [flags]",
		Short: "Make a group begin again: at the beginning, now, or at a time",
		Long: `Make a group begin again. It loses its positions, and its records of parked aggregates and skipped
events. A paused group stays paused. The old rows stay for a day. They prevent a transaction that a
handler sent before the reset from committing late. After that, the next reset or "group cleanup"
deletes them, at one write unit for each aggregate.

Events after the start are handled again, and their effects happen again. So clear the read model
before; otherwise its counts double. Members continue where they were until they see the reset, so
pause the group with --wait first.`,
		Example: "  millrace group reset order-history order --to beginning\n  millrace group reset order-history order --to 2025-06-01T00:00:00Z --yes",
		Args:    wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return wrongUsage("reset needs --to: beginning, now, a duration before now, or RFC 3339")
			}
			begin, err := parseMoment(to)
			if err != nil {
				return wrongUsage("--to: %v", err)
			}
			return a.runReset(cmd.Context(), args[0], args[1], begin, to, yes, replay())
		}),
	}
	cmd.Flags().StringVar(&to, "to", "", "`time` of the first event: beginning, now, a duration before now, or RFC 3339")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	replay = replayFlag(cmd)
	return cmd
}

// startOf returns the start of a group that is reset to a time.
func startOf(to moment, j *journal.Journal) (subscriber.Start, error) {
	at, err := to.start("to", j)
	switch {
	case err != nil:
		return subscriber.Start{}, err
	case to.isBeginning():
		return subscriber.Beginning(), nil
	case to == moment{relative: true}:
		return subscriber.Now(), nil
	}
	return subscriber.At(at), nil
}

func (a *app) runReset(ctx context.Context, name, topic string, to moment, text string, yes bool, replay groups.Option) error {
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	start, err := startOf(to, j)
	if err != nil {
		return err
	}
	g := groups.Of(j, name, topic, replay)
	if _, err := g.Status(ctx); err != nil {
		return err
	}
	if to.ago != 0 {
		text = output.Time(start.Time(time.Time{}))
	}
	if err := a.confirm(ctx, yes, name, fmt.Sprintf("Group %s loses its positions on %s, and begins again at %s.", name, topic, text)); err != nil {
		return err
	}
	rows := 0
	progress, count := a.rowProgress(&rows)
	err = g.Reset(ctx, start, count)
	progress.Done()
	if err != nil && !errors.Is(err, groups.ErrLeftovers) {
		return err
	}
	return errors.Join(a.showGroup(ctx, g), err)
}

func (a *app) remove() *cobra.Command {
	var force, yes bool
	var replay func() groups.Option
	cmd := &cobra.Command{
		Use:   "remove GROUP TOPIC [flags]",
		Short: "Remove a group",
		Long: `Remove a group. If a group with the same name subscribes later, it is a new group.

The rows of the group stay for a day. They prevent a transaction that a handler sent before the removal
from committing late. After that, the next removal of any group or "group cleanup" deletes them, at
one write unit for each aggregate. To clear and reuse what the handlers have written, pause the group
with --wait first.

Close the members first. A member that crashed counts until another member has missed its heartbeats.
If it was the last member, use --force.`,
		Args: wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			return a.runRemove(cmd.Context(), args[0], args[1], force, yes, replay())
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove the group with its members; members that are alive create it again")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	replay = replayFlag(cmd)
	return cmd
}

func (a *app) runRemove(ctx context.Context, name, topic string, force, yes bool, replay groups.Option) error {
	g, err := a.openGroup(ctx, name, topic, replay)
	if err != nil {
		return err
	}
	if _, err := g.Status(ctx); err != nil {
		return err
	}
	if err := a.confirm(ctx, yes, name, fmt.Sprintf("Group %s on %s is removed, and loses its positions.", name, topic)); err != nil {
		return err
	}
	removed := removedLine{Kind: "removed", Group: name, Topic: topic}
	progress, count := a.rowProgress(&removed.Rows)
	err = g.Remove(ctx, groups.RemoveOptions{Force: force, Progress: count})
	progress.Done()
	var active *groups.ActiveError
	if errors.As(err, &active) {
		return fmt.Errorf("%w, or remove the group with --force", err)
	}
	if err != nil && !errors.Is(err, groups.ErrLeftovers) {
		return err
	}
	return errors.Join(a.runCleanUp(ctx, g, removed), err)
}

// runCleanUp deletes the old rows of a group that are due, and prints what was done.
func (a *app) runCleanUp(ctx context.Context, g *groups.Group, done removedLine) error {
	progress, count := a.rowProgress(&done.Rows)
	until, err := g.CleanUp(ctx, count)
	progress.Done()
	if err != nil {
		return err
	}
	done.OldRowsUntil = output.Time(until)
	return a.printRemoved(done)
}

func (a *app) cleanUp() *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup GROUP TOPIC [flags]",
		Short: "Delete the rows from before resets, or of a removed group, a day later",
		Args:  wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			g, err := a.openGroup(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			return a.runCleanUp(cmd.Context(), g, removedLine{Kind: "cleaned_up", Group: args[0], Topic: args[1]})
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
	left := ""
	if l.OldRowsUntil != "" {
		left = " Old rows of this group stay until " + l.OldRowsUntil + "."
	}
	_, err := fmt.Fprintf(a.env.Out, "%s %s on %s. %s deleted.%s\n", what, printable.Text(l.Group), printable.Text(l.Topic), output.Counted(l.Rows, "old row", "old rows"), left)
	return err
}

// showGroup shows the current state of a group, without its lag.
func (a *app) showGroup(ctx context.Context, g *groups.Group) error {
	one, err := g.Status(ctx)
	if err != nil {
		return err
	}
	return a.printGroup(newGroupLine(one))
}

// rowProgress adds to the number of deleted rows, and shows it.
func (a *app) rowProgress(rows *int) (*output.Progress, func(more int)) {
	progress := a.showProgress()
	return progress, func(more int) {
		*rows += more
		progress.Show(func(time.Duration) string { return output.Counted(*rows, "row", "rows") + " deleted" })
	}
}
