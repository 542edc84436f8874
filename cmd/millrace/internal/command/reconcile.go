package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// reconcilingLine reports a group whose members compare heads with positions.
type reconcilingLine struct {
	Kind   string `json:"kind"` // "reconciling"
	Group  string `json:"group"`
	Topic  string `json:"topic"`
	Shards int    `json:"shards"`
	Left   int    `json:"left"` // shards that are left to compare
}

type reconcileOptions struct{ wait, status bool }

func (a *app) reconcile() *cobra.Command {
	var o reconcileOptions
	cmd := &cobra.Command{
		Use:   "reconcile GROUP TOPIC [flags]",
		Short: "Make a group find events that it has missed, for example after an import",
		Long: `Make the members of a group compare all aggregates with the group's positions, and handle missed
events. Use it after an import, or after writes by a machine with a wrong clock, since the tail shows
such events at the wrong place. Members begin within about two minutes.

In the classic layout members also do this every ReconcileInterval, one hour by default. In the packed
layout they then compare only recent writes, and all aggregates once a week. Members with a negative
ReconcileInterval, the default for external positions, never do it.

The command marks each shard, and members compare one shard after the other. --wait waits until all
shards are compared and the found events are handled. It does not wait for aggregates that are parked
or stay blocked; the command behind lists them. An interrupt ends the wait, and the marks stay.
--status marks no shards, and shows how many are left. --status --wait waits for the shards that were
marked before.

The command takes each shard from its owner for a moment, and costs three write units for each shard.
The comparison costs half a read unit for each 4 KB of positions. In the classic layout it also costs
half a unit for each 4 KB of heads, including states. In the packed layout it also costs half a unit
or more for each aggregate. --status costs one read unit for each shard. Each poll of --wait costs one
read unit for each shard that is left.`,
		Example: "  millrace group reconcile order-history order --wait\n  millrace group reconcile order-history order --status",
		Args:    wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			return a.runReconcile(cmd.Context(), args[0], args[1], o)
		}),
	}
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until all shards are compared")
	cmd.Flags().BoolVar(&o.status, "status", false, "only show the number of shards that are left to compare")
	return cmd
}

func (a *app) runReconcile(ctx context.Context, name, topic string, o reconcileOptions) error {
	g, err := a.openGroup(ctx, name, topic)
	if err != nil {
		return err
	}
	if !o.status {
		if err := g.Reconcile(ctx); err != nil {
			return err
		}
	}
	one, err := g.Status(ctx)
	if err != nil {
		return err
	}
	left, err := g.Reconciling(ctx)
	if err != nil {
		return err
	}
	l := reconcilingLine{Kind: "reconciling", Group: name, Topic: topic, Shards: len(one.Shards), Left: len(left)}
	if l.Left > 0 {
		a.noteWhoCompares(one)
		if o.wait {
			err = a.waitReconciled(ctx, g, &l)
		}
	}
	if err != nil {
		return err
	}
	return a.printReconciling(l)
}

// noteWhoCompares prints the reason why the comparison may not begin soon.
func (a *app) noteWhoCompares(one groups.Status) {
	switch {
	case one.ExternalPositions:
		a.note("The group has external positions. Its members compare only if their ReconcileInterval is set.")
	case one.Paused:
		a.note("The group is paused. Its members compare after it is resumed.")
	case len(one.Members) == 0:
		a.note("The group has no members. Members compare when they start.")
	}
}

func (a *app) waitReconciled(ctx context.Context, g *groups.Group, l *reconcilingLine) error {
	progress := a.showProgress()
	err := g.WaitReconciled(ctx, func(left int) {
		l.Left = left
		progress.Show(func(elapsed time.Duration) string {
			return fmt.Sprintf("%d of %s left to compare, after %s", left, output.Counted(l.Shards, "shard", "shards"), elapsed.Round(time.Second))
		})
	})
	progress.Done()
	if err != nil {
		a.note("%s left to compare. Members continue with them; --status --wait waits again.", output.Counted(l.Left, "shard is", "shards are"))
	}
	return err
}

func (a *app) printReconciling(l reconcilingLine) error {
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(l)
	}
	state := fmt.Sprintf("%d left to compare", l.Left)
	if l.Left == 0 {
		state = "all compared"
	}
	_, err := fmt.Fprintf(a.env.Out, "group %s reconciles %s of %s: %s\n", printable.Text(l.Group),
		output.Counted(l.Shards, "shard", "shards"), printable.Text(l.Topic), state)
	return err
}
