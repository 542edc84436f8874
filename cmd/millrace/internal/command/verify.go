package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/journal/archive"
)

// faultLine is a fault as JSON.
type faultLine struct {
	Kind      string            `json:"kind"` // "fault"
	Fault     archive.FaultKind `json:"fault"`
	Aggregate *aggregateName    `json:"aggregate,omitempty"` // none if it is unknown
	From      uint64            `json:"from,omitempty"`      // first event with the fault
	To        uint64            `json:"to,omitempty"`
	Reason    string            `json:"reason,omitempty"`
}

// reportLine ends a verification.
type reportLine struct {
	Kind       string `json:"kind"` // "report"
	Aggregates int64  `json:"aggregates"`
	Events     int64  `json:"events"`
	Faults     int    `json:"faults"`
	Complete   bool   `json:"complete"` // false if the verification ended early
}

var faultColumns = []output.Column[faultLine]{
	{Name: "FAULT", Cell: func(f faultLine) string { return string(f.Fault) }},
	{Name: "AGGREGATE", Cell: func(f faultLine) string {
		if f.Aggregate == nil {
			return "-"
		}
		return f.Aggregate.Type + " " + f.Aggregate.Value
	}},
	{Name: "EVENTS", Cell: func(f faultLine) string {
		switch f.From {
		case 0:
			return "-"
		case f.To:
			return strconv.FormatUint(f.From, 10)
		}
		return fmt.Sprintf("%d to %d", f.From, f.To)
	}},
	{Name: "REASON", Cell: func(f faultLine) string { return f.Reason }},
}

type verifyOptions struct {
	only             selection
	against, archive string
}

func (a *app) verify() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify [flags]",
		Short: "Verify the journal against the invariants, or against an archive",
		Long: `Verify each aggregate:

  - it has all events up to the version of its head, without a gap, and none beyond
  - each event can be read, and is stored under the right keys
  - its snapshot covers the truncated events

Unless --id selects one aggregate, also find items that do not belong to any aggregate. The exit code
is 1 if there is a fault. Applications can write events meanwhile. The checkpoint table, with the
positions of consumer groups, is not verified.

--against compares each event of an archive with the journal instead. It verifies that an import is
complete, or that nothing has changed since an export. --archive verifies an archive by itself, and
needs no DynamoDB.

It costs one and a half read units for each 4 KB of events, and up to three for each 4 KB of states.
In the packed layout it costs two or three more for each aggregate. With --against it costs half a
unit for each 4 KB of events in the classic layout, and one in the packed layout.`,
		Example: "  millrace verify\n  millrace verify --type account --id 42\n  millrace verify --against backup.jsonl",
		Args:    wants(),
		RunE:    a.does(func(cmd *cobra.Command, _ []string) error { return a.runVerify(cmd.Context(), o) }),
	}
	o.only.register(cmd)
	cmd.Flags().StringVar(&o.against, "against", "", "compare with the archive in this `file`, - for standard input")
	cmd.Flags().StringVar(&o.archive, "archive", "", "verify the archive in this `file`, - for standard input")
	return cmd
}

func (a *app) runVerify(ctx context.Context, o verifyOptions) error {
	only, err := o.only.get()
	switch {
	case err != nil:
		return err
	case o.against != "" && o.archive != "":
		return wrongUsage("--against compares an archive with the journal, --archive verifies it by itself: choose one")
	case o.archive != "" && only != (archive.Selection{}):
		return wrongUsage("--archive verifies the whole archive: leave out --type and --id")
	}
	progress := a.showProgress()
	report, err := a.findFaults(ctx, o, archive.VerifyOptions{Only: only, Progress: func(p archive.Progress) {
		progress.Show(func(elapsed time.Duration) string {
			return fmt.Sprintf("%s, %s, %s a second", output.Counted(p.Aggregates, "aggregate", "aggregates"),
				output.Counted(p.Events, "event", "events"), output.Count(rate(p.Events, elapsed)))
		})
	}})
	progress.Done()
	if errors.As(err, new(*noTopicError)) {
		return err
	}
	if err := a.printReport(report, err == nil); err != nil {
		return err
	}
	switch {
	case err != nil:
		return err
	case len(report.Faults) > 0:
		return fmt.Errorf("%w: %s", archive.ErrFaults, output.Counted(len(report.Faults), "fault", "faults"))
	}
	return nil
}

func (a *app) findFaults(ctx context.Context, o verifyOptions, with archive.VerifyOptions) (archive.Report, error) {
	if o.archive != "" {
		in, err := a.openInput(ctx, o.archive)
		if err != nil {
			return archive.Report{}, err
		}
		defer func() { _ = in.Close() }()
		return archive.VerifyArchive(in)
	}
	j, err := a.open(ctx)
	if err != nil {
		return archive.Report{}, err
	}
	if o.against == "" {
		if err := knownTopic(ctx, j, o.only.aggregateType); err != nil {
			return archive.Report{}, err
		}
		return archive.Verify(ctx, j, with)
	}
	in, err := a.openInput(ctx, o.against)
	if err != nil {
		return archive.Report{}, err
	}
	defer func() { _ = in.Close() }()
	report, err := archive.Compare(ctx, j, in, with)
	if err == nil && report.Aggregates == 0 && len(report.Faults) == 0 {
		// The archive has no such aggregates either.
		err = knownTopic(ctx, j, o.only.aggregateType)
	}
	return report, err
}

// printReport prints the faults of a verification, also if it ended early.
func (a *app) printReport(r archive.Report, complete bool) error {
	rows := output.NewRows(a.env.Out, a.json, faultColumns...)
	for _, f := range r.Faults {
		line := faultLine{Kind: "fault", Fault: f.Kind, From: f.From, To: f.To}
		if f.Aggregate != (aggregate.ID{}) {
			name := nameOf(f.Aggregate)
			line.Aggregate = &name
		}
		if f.Err != nil {
			line.Reason = f.Err.Error()
		}
		if err := rows.Print(line); err != nil {
			return err
		}
	}
	if err := rows.Flush(); err != nil {
		return err
	}
	if a.json {
		return output.NewEncoder(a.env.Out).Encode(reportLine{
			Kind: "report", Aggregates: r.Aggregates, Events: r.Events, Faults: len(r.Faults), Complete: complete,
		})
	}
	if !complete {
		return nil // an error follows
	}
	result := "sound"
	if len(r.Faults) > 0 {
		result = output.Counted(len(r.Faults), "fault", "faults")
	}
	_, err := fmt.Fprintf(a.env.Out, "%s, %s: %s\n", output.Counted(r.Aggregates, "aggregate", "aggregates"),
		output.Counted(r.Events, "event", "events"), result)
	return err
}

// openInput opens a file, or standard input for "-". Reading ends with the context.
func (a *app) openInput(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(reader{ctx, a.env.In}), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{reader{ctx, f}, f}, nil
}

// reader ends with its context, also for functions without a context.
type reader struct {
	ctx context.Context
	in  io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}
