package command

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/journal"
)

// aggregateLine is an aggregate in the list of a type.
type aggregateLine struct {
	Kind            string        `json:"kind"` // "aggregate"
	Aggregate       aggregateName `json:"aggregate"`
	Version         uint64        `json:"version"`
	Shard           int           `json:"shard"`
	TruncatedBefore uint64        `json:"truncated_before,omitempty"`
	DeletedAt       string        `json:"deleted_at,omitempty"`
}

var aggregateColumns = []output.Column[aggregateLine]{
	{Name: "ID", Cell: func(l aggregateLine) string { return l.Aggregate.Value }},
	{Name: "VERSION", Cell: func(l aggregateLine) string { return output.Count(l.Version) }},
	{Name: "SHARD", Cell: func(l aggregateLine) string { return strconv.Itoa(l.Shard) }},
	{Name: "STATE", Cell: func(l aggregateLine) string {
		switch {
		case l.DeletedAt != "":
			return "deleted at " + l.DeletedAt
		case l.TruncatedBefore > 0:
			return "truncated before event " + strconv.FormatUint(l.TruncatedBefore, 10)
		}
		return "-"
	}},
}

func (a *app) aggregates() *cobra.Command {
	after, limit := "", 0
	cmd := &cobra.Command{
		Use:   "aggregates TYPE [flags]",
		Short: "List the aggregates of a type",
		Long: `List the aggregates of a type by shard and id, including deleted aggregates. --limit ends the list;
the command then reads little more than it shows. --after continues the list after an aggregate.

In the classic layout it reads the rows of the type in the snapshot table: one read unit for each
4 KB, including states. In the packed layout it reads an index and the last commit of each aggregate:
one read unit or more for each aggregate.`,
		Example: "  millrace aggregates account\n  millrace aggregates account --limit 100 --after 42",
		Args:    wants("TYPE"),
		RunE: a.does(a.aboutTopic(0, func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return wrongUsage("--limit is %d: want 1 or more, or 0 for all", limit)
			}
			q := journal.HeadsQuery{AggregateType: args[0], Limit: limit}
			if err := notEmpty(cmd.Flags(), "after"); err != nil {
				return wrongUsage("%v", err)
			}
			if after != "" {
				var err error
				if q.After, err = aggregate.NewID(args[0], after); err != nil {
					return wrongUsage("--after: %v", err)
				}
			}
			return a.runAggregates(cmd.Context(), q)
		})),
	}
	cmd.Flags().StringVar(&after, "after", "", "`id` of the aggregate after which to begin")
	cmd.Flags().IntVar(&limit, "limit", 0, "`number` of aggregates to list; default is all")
	return cmd
}

func (a *app) runAggregates(ctx context.Context, q journal.HeadsQuery) error {
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	q.Corrupt = func(err *journal.CorruptItemError) { a.note("millrace: %v", err) }
	rows := output.NewRows(a.env.Out, a.json, aggregateColumns...)
	listed := false
	for head, err := range j.Heads(ctx, q) {
		if err != nil {
			_ = rows.Flush() // the error of the read is more important
			return err
		}
		if err := rows.Print(aggregateLine{
			Kind: "aggregate", Aggregate: nameOf(head.Aggregate), Version: head.Version, Shard: j.Internal().Shard(head.Aggregate),
			TruncatedBefore: head.TruncatedBefore, DeletedAt: output.Time(head.DeletedAt),
		}); err != nil {
			return err
		}
		listed = true
	}
	if !listed && q.After == (aggregate.ID{}) {
		return &noTopicError{topic: q.AggregateType}
	}
	return rows.Flush()
}
