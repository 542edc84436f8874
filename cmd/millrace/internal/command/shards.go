package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
)

// shardsLine is how a journal is divided, as JSON.
type shardsLine struct {
	Kind       string     `json:"kind"` // "shards"
	Shards     int        `json:"shards"`
	Partitions int        `json:"tail_partitions"`
	Since      *time.Time `json:"since,omitempty"` // from when on writers use those that were added
}

func (a *app) shards() *cobra.Command {
	to := 0
	cmd := &cobra.Command{
		Use:   "shards [flags]",
		Short: "Show the shards and the partitions of the tail, or have the tail grow",
		Long: `Show how many shards the journal has, and how many partitions its tail. With --to, a journal in the packed layout gets more
partitions: as many as it has shards, times a power of two. Each takes about 1,000 commits a second. Everything goes on
meanwhile, and shards, positions and owners stay as they are. Writers use the new partitions 10 minutes later, and until another 10
minutes have passed it refuses to grow again. Each consumer group polls each partition, so twice as many double what an idle group costs.
The tail never becomes smaller.`,
		Example: "  millrace shards --to 64",
		Args:    wants(),
		RunE:    a.does(func(cmd *cobra.Command, _ []string) error { return a.runShards(cmd.Context(), to) }),
	}
	cmd.Flags().IntVar(&to, "to", 0, "`number` of partitions that the tail is to have")
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
