package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func (a *app) dropModel(o *modelOptions) *cobra.Command {
	var force, yes bool
	var refresh time.Duration
	cmd := &cobra.Command{
		Use:   "drop NAME GENERATION [flags]",
		Short: "Drop a generation, and remove its groups",
		Long: `Drop a generation: its consumers stop, and then its groups are removed (group remove). The command
waits for the consumers. It can be interrupted and repeated. The tables of the generation belong to
the programs and stay; delete them afterwards.

If the last member of a group has crashed, the command waits forever. --force then removes the group
with its members. Use it only after the programs have stopped to consume the generation. A program
that still consumes it creates the group again, and drop has to be repeated.`,
		Example: "  millrace model drop orders 1\n  millrace model drop orders 1 --force --yes",
		Args:    wantsGeneration(true),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			if refresh <= 0 {
				return wrongUsage("--refresh is %s: want more than 0", refresh)
			}
			g, err := generationOf(args[0], args[1])
			if err != nil {
				return err
			}
			m, err := a.openModel(cmd.Context(), *o, args[0], readmodel.Config{Refresh: refresh})
			if err != nil {
				return err
			}
			what := fmt.Sprintf("Generation %s of read model %s is no longer kept up to date, and cannot be restored.", g, g.Model)
			if err := a.confirm(cmd.Context(), yes, g.Model, what); err != nil {
				return err
			}
			return a.runDrop(cmd.Context(), m, g, force)
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove its groups with their members, for example members of crashed programs")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().DurationVar(&refresh, "refresh", time.Second, "the programs' readmodel.Config.Refresh, if it is longer")
	return cmd
}

// droppedLine reports a generation that was dropped.
type droppedLine struct {
	Kind       string `json:"kind"` // "dropped"
	Model      string `json:"model"`
	Generation uint64 `json:"generation"`
	Rows       int    `json:"rows"` // that were deleted, of groups that were removed a day before
}

func (a *app) runDrop(ctx context.Context, m *readmodel.Model, g readmodel.Generation, force bool) error {
	rows := 0
	progress, count := a.rowProgress(&rows)
	progress.Show(func(time.Duration) string { return g.String() + ": waiting until its members have left" })
	err := m.Drop(ctx, g, groups.RemoveOptions{Force: force, Progress: count})
	progress.Done()
	var active *groups.ActiveError
	if errors.As(err, &active) {
		return fmt.Errorf("%w; the generation is dropped, but its groups are not removed: repeat the command, with --force if the members have crashed", err)
	}
	if err != nil {
		return err
	}
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(droppedLine{Kind: "dropped", Model: g.Model, Generation: g.Number, Rows: rows})
	}
	_, err = fmt.Fprintf(a.env.Out, "Dropped generation %s. %s deleted.\n", g, output.Counted(rows, "old row", "old rows"))
	return err
}
