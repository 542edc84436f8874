package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// reconcilingLine reports a group whose members compare heads with positions.
type reconcilingLine struct {
	Kind   string `json:"kind"` // "reconciling"
	Group  string `json:"group"`
	Topic  string `json:"topic"`
	Shards int    `json:"shards"`
	Left   int    `json:"left"` // shards that are still to be compared
}

type reconcileOptions struct{ wait, status bool }

func (a *app) reconcile() *cobra.Command {
	var o reconcileOptions
	cmd := &cobra.Command{
		Use:   "reconcile GROUP TOPIC [flags]",
		Short: "Have a group look for events that it has missed, as after an import",
		Long: `Have the members of a group compare all aggregates with the group's positions, and handle what is missing. They begin within about two
minutes. In the classic layout they also do so by themselves every ReconcileInterval, one hour by default, and events show at the wrong place
of the tail after an import, or after a writer with a wrong clock. In the packed layout members compare by themselves only what was
written lately, and all aggregates once a week.

It marks each shard, and a member compares one shard after the other. --wait waits until all are compared and what was found is handled, but
not for aggregates that are parked or stay blocked, which the command behind lists. An interrupt ends the wait, and the marks stay.
--status marks nothing, and shows how many shards are left; both together wait for what was marked before.

It takes each shard from its owner for a moment. It costs three write units for each shard. The comparison costs half a read unit for each
4 KB of positions and, in the classic layout, of heads, states included; in the packed layout half a unit or more for each aggregate.
--status costs a read unit for each shard, and so does each poll of --wait for each shard that is left. Members with a negative ReconcileInterval, the default where positions are in a store of their own, ignore the marks.`,
		Example: "  millrace group reconcile order-history order --wait\n  millrace group reconcile order-history order --status",
		Args:    wants("GROUP", "TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			return a.runReconcile(cmd.Context(), args[0], args[1], o)
		}),
	}
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until all shards are compared")
	cmd.Flags().BoolVar(&o.status, "status", false, "only show how many shards are left to compare")
	return cmd
}

func (a *app) runReconcile(ctx context.Context, name, topic string, o reconcileOptions) error {
	g, err := a.openGroups(ctx)
	if err != nil {
		return err
	}
	if !o.status {
		if err := g.Reconcile(ctx, name, topic); err != nil {
			return err
		}
	}
	one, err := g.Get(ctx, name, topic)
	if err != nil {
		return err
	}
	left, err := g.Reconciling(ctx, name, topic)
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

// noteWhoCompares says why the comparison may not begin soon.
func (a *app) noteWhoCompares(one groups.Group) {
	switch {
	case one.ExternalPositions:
		a.note("The group's positions are in a store of its members' own. These compare only if their ReconcileInterval is set.")
	case one.Paused:
		a.note("The group is paused. Its members compare once it is resumed.")
	case len(one.Members) == 0:
		a.note("The group has no members. The next ones compare.")
	}
}

func (a *app) waitReconciled(ctx context.Context, g *groups.Groups, l *reconcilingLine) error {
	progress := a.showProgress()
	err := g.WaitReconciled(ctx, l.Group, l.Topic, func(left int) {
		l.Left = left
		progress.Show(func(elapsed time.Duration) string {
			return fmt.Sprintf("%d of %s left to compare, after %s", left, output.Counted(l.Shards, "shard", "shards"), elapsed.Round(time.Second))
		})
	})
	progress.Done()
	if err != nil {
		a.note("%s left to compare. Members go on with them; --status --wait waits again.", output.Counted(l.Left, "shard is", "shards are"))
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
	_, err := fmt.Fprintf(a.env.Out, "group %s reconciles %s of %s: %s\n", output.Clean(l.Group),
		output.Counted(l.Shards, "shard", "shards"), output.Clean(l.Topic), state)
	return err
}
