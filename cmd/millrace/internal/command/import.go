package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal/archive"
)

type importOptions struct {
	only          selection
	skipDifferent bool
}

// importing is the command import. The word import is a keyword of Go.
func (a *app) importing() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE [flags]",
		Short: "Write an archive into the journal",
		Long: `Write the aggregates of an archive, or those that --type and --id select, into a journal of any shard
count and layout. millrace create creates one. FILE - is standard input. Events that the journal
already has are compared and kept, so an interrupted import can be run again.

If an aggregate of the journal has another history than in the archive, it is not changed, and the
import ends. --skip-different leaves out such aggregates.

In the classic layout, consumer groups may have passed the time of the imported events. They handle
such events with the next event of the aggregate, or at the latest after the next reconciliation
(subscriber.Timing.ReconcileInterval, one hour by default). If that is too late, import before the
groups start, or use "millrace group reconcile". In the packed layout the tail has the order of
writing, so groups handle imported events at once.`,
		Example: "  millrace import backup.jsonl\n  gunzip -c account-42.jsonl.gz | millrace import --endpoint http://127.0.0.1:8000 -",
		Args:    wants("FILE"),
		RunE:    a.does(func(cmd *cobra.Command, args []string) error { return a.runImport(cmd.Context(), args[0], o) }),
	}
	o.only.register(cmd)
	cmd.Flags().BoolVar(&o.skipDifferent, "skip-different", false,
		"leave out aggregates whose history differs from the archive; the exit code is then 1")
	return cmd
}

func (a *app) runImport(ctx context.Context, path string, o importOptions) error {
	only, err := o.only.get()
	if err != nil {
		return err
	}
	in, err := a.openInput(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	different := 0
	with := archive.ImportOptions{Only: only}
	if o.skipDifferent {
		with.Different = func(h *archive.HistoryError) error {
			different++
			a.note("millrace: left out: %v", h)
			return nil
		}
	}
	progress := a.showProgress()
	with.Progress = func(p archive.ImportProgress) {
		progress.Show(func(elapsed time.Duration) string { return progressText(p.Progress, 0, elapsed) })
	}
	done, err := archive.Import(ctx, j, in, with)
	progress.Done()
	if err != nil {
		if done.Events > 0 && !errors.As(err, new(*archive.HistoryError)) {
			a.next = fmt.Sprintf("%s so far. Run the command again to continue.", output.Counted(done.Events, "event", "events"))
		}
		return err
	}
	line := archiveLine{
		Kind: "imported", Aggregates: done.Aggregates, Events: done.Events, Bytes: done.Bytes, LeftOut: done.LeftOut,
		Present: done.Present, SnapshotsLeftOut: done.SnapshotsLeftOut, Different: different,
	}
	if done.SnapshotError != nil {
		line.SnapshotReason = printable.Text(done.SnapshotError.Error())
	}
	if err := a.printArchive(a.env.Out, line); err != nil {
		return err
	}
	if different > 0 {
		return fmt.Errorf("different history: %s of the journal differ from the archive", output.Counted(different, "aggregate", "aggregates"))
	}
	return nil
}
