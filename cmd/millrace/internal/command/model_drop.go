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
		Short: "Give a generation up, and remove its groups",
		Long: `Give a generation up: its consumers stop, and when they have, its groups are removed, one write unit for each aggregate. It waits for them and
may be interrupted and repeated. The tables of the generation are the programs' and stay: delete them afterwards.

A member that crashed keeps its group, and this command waits forever if it was the last one: --force removes the group
with it. Use it when the programs that consumed the generation have stopped doing so, or are gone; one that goes on begins the
group anew, and drop has to be repeated.`,
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
			what := fmt.Sprintf("Generation %s of read model %s is not kept up to date any more, and cannot be taken up again.", g, g.Model)
			if err := a.confirm(cmd.Context(), yes, g.Model, what); err != nil {
				return err
			}
			return a.runDrop(cmd.Context(), m, g, force)
		}),
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove its groups with the members that they still have, as those of crashed programs")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().DurationVar(&refresh, "refresh", time.Second, "the programs' readmodel.Config.Refresh, if it is longer")
	return cmd
}

// droppedLine reports a generation that was dropped.
type droppedLine struct {
	Kind       string `json:"kind"` // "dropped"
	Model      string `json:"model"`
	Generation uint64 `json:"generation"`
	Rows       int    `json:"rows"` // that its groups had
}

func (a *app) runDrop(ctx context.Context, m *readmodel.Model, g readmodel.Generation, force bool) error {
	progress, count := a.rowProgress()
	progress.Show(func(time.Duration) string { return g.String() + ": waiting until its members have left" })
	rows := 0
	err := m.Drop(ctx, g, groups.Removal{Force: force, Progress: func(n int) { rows += n; count(n) }})
	progress.Done()
	var active *groups.ActiveError
	if errors.As(err, &active) {
		return fmt.Errorf("%w; the generation is dropped, so repeat the command, with --force if they have crashed", err)
	}
	if err != nil {
		return err
	}
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(droppedLine{Kind: "dropped", Model: g.Model, Generation: g.Number, Rows: rows})
	}
	_, err = fmt.Fprintf(a.env.Out, "Dropped generation %s: %s of its groups deleted\n", g, output.Counted(rows, "row", "rows"))
	return err
}
