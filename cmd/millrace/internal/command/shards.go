package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
)

// shardsLine has the numbers of shards and partitions as JSON.
type shardsLine struct {
	Kind       string     `json:"kind"` // "shards"
	Shards     int        `json:"shards"`
	Partitions int        `json:"tail_partitions"`
	Since      *time.Time `json:"since,omitempty"` // time from which writers use the new partitions
}

func (a *app) shards() *cobra.Command {
	to := 0
	cmd := &cobra.Command{
		Use:   "shards [flags]",
		Short: "Show the shards and the partitions of the tail, or add partitions",
		Long: `Show the number of shards of the journal, and the number of partitions of its tail.

--to adds partitions to the tail of a journal in the packed layout. The number of partitions is the
number of shards times a power of two, and never becomes smaller. Each partition takes about 1,000
commits per second. Programs can run meanwhile; shards, positions and owners do not change. Writers
use the new partitions after 10 minutes, and after another 10 minutes the tail can grow again. Each
consumer group polls each partition, so twice as many partitions double the cost of an idle group.`,
		Example: "  millrace shards --to 64",
		Args:    wants(),
		RunE:    a.does(func(cmd *cobra.Command, _ []string) error { return a.runShards(cmd.Context(), to) }),
	}
	cmd.Flags().IntVar(&to, "to", 0, "new `number` of partitions of the tail")
	return cmd
}

func (a *app) runShards(ctx context.Context, to int) error {
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	partitions, err := j.TailPartitions(ctx)
	if err != nil {
		return err
	}
	l := shardsLine{Kind: "shards", Shards: j.Shards(), Partitions: partitions}
	fields := []output.Field{{Name: "shards", Value: output.Count(l.Shards)}}
	if to != 0 {
		since, err := j.GrowTail(ctx, to)
		if err != nil {
			return err
		}
		since = since.UTC()
		l.Partitions, l.Since = to, &since
	}
	fields = append(fields, output.Field{Name: "partitions of the tail", Value: output.Count(l.Partitions)})
	if l.Since != nil {
		fields = append(fields, output.Field{Name: "used by writers from", Value: l.Since.Format(time.RFC3339)})
	}
	return a.line(l, fields...)
}
