package command

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/tail"
)

type tailOptions struct {
	since            string
	follow, payload  bool
	interval, trails time.Duration
}

func (a *app) tail() *cobra.Command {
	var o tailOptions
	cmd := &cobra.Command{
		Use:   "tail TOPIC [flags]",
		Short: "Show the latest events of a topic, and follow it live",
		Long: `Show the events of a topic, which is an aggregate type, in the order of their times. --follow also
shows new events until interrupted. The command uses no consumer group: it stores nothing, and does
not affect subscribers.

Each event is shown once. The index is eventually consistent, and the clocks of writers differ. So an
event may be shown late, after events with later times. An event that appears in the index later than
--trailing-delay, such as an event that was imported into the classic layout, is not shown. A program
that needs every event in order has to subscribe.

It costs half a read unit for each 4 KB of events, and twice that with --follow. With --follow each
shard also costs half a unit for each --interval, and half a unit for each half of --trailing-delay:
0.6 units per second by default.`,
		Example: "  millrace tail account\n  millrace tail account --follow --since now --payload\n  millrace tail account --since 2025-06-01T12:00:00Z --json",
		Args:    wants("TOPIC"),
		RunE: a.does(func(cmd *cobra.Command, args []string) error {
			since, err := parseMoment(o.since)
			switch {
			case err != nil:
				return wrongUsage("--since: %v", err)
			case o.interval <= 0:
				return wrongUsage("--interval is %s: want more than 0", o.interval)
			case o.trails <= 0:
				return wrongUsage("--trailing-delay is %s: want more than 0", o.trails)
			}
			err = a.runTail(cmd.Context(), args[0], since, o)
			if o.follow && errors.Is(err, context.Canceled) {
				return nil // the usual end
			}
			return err
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.since, "since", "10m", "`time` of the earliest event: beginning, now, a duration before now, or RFC 3339")
	flags.BoolVarP(&o.follow, "follow", "f", false, "also show new events, until interrupted")
	flags.BoolVar(&o.payload, "payload", false, "show payloads")
	flags.DurationVar(&o.interval, "interval", time.Second, "pause between reads of new events, with --follow")
	flags.DurationVar(&o.trails, "trailing-delay", 10*time.Second, "maximum delay with which an event may appear in the index, with --follow")
	return cmd
}

func (a *app) runTail(ctx context.Context, topic string, from moment, o tailOptions) error {
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	since, err := from.start("since", j)
	if err != nil {
		return err
	}
	columns := []output.Column[eventLine]{timeColumn, aggregateColumn, numberColumn, typeColumn, sizeColumn, metadataColumn}
	if o.payload {
		columns = append(columns, payloadColumn)
	}
	rows := output.NewRows(a.env.Out, a.json, columns...)
	if o.follow && a.env.ErrTerminal && !a.json {
		a.note("Following %q on %s until interrupted.", topic, a.place)
	}
	shown := false
	err = tail.Run(ctx, tail.Config{
		Journal: j, Topic: topic, Since: since, Follow: o.follow, Interval: o.interval, TrailingDelay: o.trails, Now: j.Config().Now,
		OnError: func(err error) { a.note("millrace: %s", a.explain(ctx, err)) },
	}, func(batch []*journal.Record) error {
		shown = true
		for _, r := range batch {
			line, err := newEventLine(ctx, j, r, o.payload)
			if err != nil {
				return err
			}
			if err := rows.Print(line); err != nil {
				return err
			}
		}
		return rows.Flush()
	})
	if err == nil && !shown {
		if err = a.orNoTopic(ctx, topic, nil); err == nil {
			a.noteNothing(topic, since)
		}
	}
	return err
}

// noteNothing prints that a topic has no events to show.
func (a *app) noteNothing(topic string, since time.Time) {
	if since.IsZero() {
		a.note("No events of %q are left: they were removed.", topic)
		return
	}
	a.note("No events of %q since %s; --since beginning shows all events.", topic, output.Time(since))
}
