package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/journal"
)

// headLine is an aggregate's head as JSON.
type headLine struct {
	Kind            string        `json:"kind"` // "head"
	Aggregate       aggregateName `json:"aggregate"`
	Version         uint64        `json:"version"`
	Shard           int           `json:"shard"`
	Snapshot        *snapshotLine `json:"snapshot,omitempty"`
	TruncatedBefore uint64        `json:"truncated_before,omitempty"`
	DeletedAt       string        `json:"deleted_at,omitempty"`
}

// snapshotLine is the latest snapshot of an aggregate. Number is 0 if a foreign writer has written
// it.
type snapshotLine struct {
	Number   uint64 `json:"number"`
	Schema   uint64 `json:"schema,omitempty"`
	Bytes    int    `json:"bytes"`
	Encoding string `json:"encoding,omitempty"`
}

func (s *snapshotLine) String() string {
	if s == nil {
		return ""
	}
	of := "of event " + output.Count(s.Number)
	if s.Number == 0 {
		of = "of a foreign writer"
	}
	text := of + ", " + output.Bytes(s.Bytes)
	if s.Schema != 0 {
		text += fmt.Sprintf(", schema %d", s.Schema)
	}
	if s.Encoding != "" {
		text += ", " + s.Encoding
	}
	return text
}

type streamOptions struct {
	from, to uint64
	payload  bool
}

func (a *app) stream() *cobra.Command {
	var o streamOptions
	cmd := &cobra.Command{
		Use:   "stream TYPE ID [flags]",
		Short: "Show the events of one aggregate",
		Long: `Show the head of an aggregate and its events, in order. If an event is missing or cannot be read, the
command shows the events before it, and fails. millrace verify shows all faults.

The size is the size of the stored payload. Payloads are shown as JSON or text if they are, and else
in base64. Compressed payloads are decoded. For encrypted payloads the size is shown, and with --json
the stored bytes.`,
		Example: "  millrace stream account 42\n  millrace stream account 42 --from 100 --to 120 --payload\n  millrace stream account 42 --json --payload | jq .payload",
		Args:    wants("TYPE", "ID"),
		RunE: a.does(a.aboutTopic(0, func(cmd *cobra.Command, args []string) error {
			id, err := aggregate.NewID(args[0], args[1])
			if err != nil {
				return wrongUsage("%v", err)
			}
			if o.to != 0 && o.from > o.to {
				return wrongUsage("--from %d is after --to %d", o.from, o.to)
			}
			return a.runStream(cmd.Context(), id, o)
		})),
	}
	cmd.Flags().Uint64Var(&o.from, "from", 0, "`number` of the first event; default is the first event of the aggregate")
	cmd.Flags().Uint64Var(&o.to, "to", 0, "`number` of the last event; default is the last event of the aggregate")
	cmd.Flags().BoolVar(&o.payload, "payload", false, "show payloads")
	return cmd
}

func (a *app) runStream(ctx context.Context, id aggregate.ID, o streamOptions) error {
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	head, err := j.Raw().Head(ctx, id)
	if err != nil {
		return err
	}
	if err := a.printHead(j, head); err != nil {
		return err
	}
	first, last := max(o.from, head.TruncatedBefore, 1), head.Version
	if o.to != 0 {
		last = min(o.to, last)
	}
	if o.from != 0 && o.from < min(first, last+1) {
		a.note("Events before %d were removed.", head.TruncatedBefore)
	}
	if first > last {
		return nil
	}
	columns := []output.Column[eventLine]{numberColumn, timeColumn, typeColumn, sizeColumn, idColumn, metadataColumn}
	if o.payload {
		columns = append(columns, payloadColumn)
	}
	if !a.json {
		_, _ = fmt.Fprintln(a.env.Out)
	}
	rows := output.NewRows(a.env.Out, a.json, columns...)
	for r, err := range j.Raw().Events(ctx, id, first, last) {
		if err != nil {
			_ = rows.Flush()
			return err
		}
		line, err := newEventLine(ctx, j, r, o.payload)
		if err != nil {
			return err
		}
		if err := rows.Print(line); err != nil {
			return err
		}
	}
	return rows.Flush()
}

func (a *app) printHead(j *journal.Journal, head journal.Head) error {
	l := headLine{
		Kind: "head", Aggregate: nameOf(head.Aggregate), Version: head.Version, Shard: j.Internal().Shard(head.Aggregate),
		TruncatedBefore: head.TruncatedBefore, DeletedAt: output.Time(head.DeletedAt),
	}
	if s := head.Snapshot; s != nil {
		l.Snapshot = &snapshotLine{Number: s.Number, Schema: s.Schema, Bytes: len(s.Payload), Encoding: s.Encoding}
	}
	var truncated string
	if l.TruncatedBefore != 0 {
		truncated = "events before " + output.Count(l.TruncatedBefore)
	}
	return a.line(l,
		output.Field{Name: "aggregate", Value: l.Aggregate.Type + " " + l.Aggregate.Value},
		output.Field{Name: "version", Value: output.Count(l.Version)},
		output.Field{Name: "shard", Value: fmt.Sprintf("%s-%d", l.Aggregate.Type, l.Shard)},
		output.Field{Name: "snapshot", Value: l.Snapshot.String()},
		output.Field{Name: "removed", Value: truncated},
		output.Field{Name: "deleted", Value: l.DeletedAt},
	)
}
