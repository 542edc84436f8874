package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// retriedLine reports how many skipped events of a group are tried again.
type retriedLine struct {
	Kind   string `json:"kind"` // "retried_all"
	Group  string `json:"group"`
	Topic  string `json:"topic"`
	Events int    `json:"events"`
}

func (a *app) retrySkipped() *cobra.Command {
	var selected parkedSelection
	cmd := &cobra.Command{
		Use:   "retry-skipped GROUP TOPIC (ID NUMBER | --all) [flags]",
		Short: "Try skipped or deferred events again, each by itself",
		Long: `Try a skipped or deferred event again at once, or with --all all of them. --reason and --type select
some of them. Other events of the aggregate do not wait for it, so it is handled out of order.
Projections refuse such an event; use reset-aggregate for them.

--all costs one write unit for each event and two for each shard. If it ends early, run it again for
the rest.`,
		Example: "  millrace group retry-skipped mails booking 42 7\n  millrace group retry-skipped mails booking --all --reason 'connection refused'",
		Args:    selected.wants("ID", "NUMBER"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if selected.all {
				return a.retryAllSkipped(cmd.Context(), args[0], args[1], selected.get())
			}
			id, number, err := eventOf(args[1], args[2], args[3])
			if err != nil {
				return err
			}
			g, err := a.openGroups(cmd.Context())
			if err != nil {
				return err
			}
			if err := g.RetrySkipped(cmd.Context(), args[0], id, number); err != nil {
				return err
			}
			return a.printEdited(editedLine{Kind: "retried", Group: args[0], Aggregate: nameOf(id), Number: number})
		}),
	}
	cmd.Flags().BoolVar(&selected.all, "all", false, "retry all skipped and deferred events of the group, instead of one")
	selected.registerFilters(cmd, "with --all: only those")
	return cmd
}

func (a *app) retryAllSkipped(ctx context.Context, name, topic string, selection groups.Selection) error {
	g, err := a.openGroup(ctx, name, topic)
	if err != nil {
		return err
	}
	lines, failed := output.NewEncoder(a.env.Out), error(nil)
	selection.Edited = func(id aggregate.ID, number uint64) {
		if a.json && failed == nil {
			failed = lines.Encode(editedLine{Kind: "retried", Group: name, Aggregate: nameOf(id), Number: number})
		}
	}
	n, err := g.RetryAllSkipped(ctx, selection)
	if err != nil {
		a.note("The command ended early. Some events are tried again. Run it again for the rest.")
		return errors.Join(failed, a.printRetried(name, topic, n), err)
	}
	if n == 0 {
		a.note("No skipped event was selected. The command skipped lists them with their reasons.")
	}
	return errors.Join(failed, a.printRetried(name, topic, n))
}

func (a *app) printRetried(name, topic string, n int) error {
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(retriedLine{Kind: "retried_all", Group: name, Topic: topic, Events: n})
	}
	_, err := fmt.Fprintf(a.env.Out, "retrying %s of group %s on %s\n", output.Counted(n, "event", "events"), printable.Text(name), printable.Text(topic))
	return err
}
