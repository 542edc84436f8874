package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/journal/archive"
)

type importOptions struct {
	only          selection
	skipDifferent bool
}

// importing is the command import, which is a word of Go.
func (a *app) importing() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import FILE [flags]",
		Short: "Write an archive into the journal",
		Long: `Write the aggregates of an archive, or those that --type and --id say, into a journal of any shard count and layout; millrace create
makes one. FILE - is standard input. What the journal has already is compared and kept, so an import that was cut off is run again.

An aggregate of the journal that is not the one of the archive ends the import, and is never changed; --skip-different passes over
it.

In the classic layout, consumer groups that have passed the time of the events get them with the next event of their aggregate, at the
latest by a reconciliation (subscriber.Config.ReconcileInterval, an hour by default). Where that is too late, import before groups start, or use
"millrace group reconcile". In the packed layout the tail goes by the time of writing, so groups get imported events at once.`,
		Example: "  millrace import backup.jsonl\n  gunzip -c account-42.jsonl.gz | millrace import --endpoint http://127.0.0.1:8000 -",
		Args:    wants("FILE"),
		RunE:    a.does(func(cmd *cobra.Command, args []string) error { return a.runImport(cmd.Context(), args[0], o) }),
	}
	o.only.register(cmd)
	cmd.Flags().BoolVar(&o.skipDifferent, "skip-different", false,
		"go on when an aggregate of the journal is not the one of the archive; the exit code is 1 then")
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
			a.note("millrace: passed over: %v", h)
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
		if done.Events > 0 {
			a.note("%s so far. Run it again to go on.", output.Counted(done.Events, "event", "events"))
		}
		var history *archive.HistoryError
		if errors.As(err, &history) {
			a.note("Nothing of that aggregate was changed. --skip-different goes on with the others.")
		}
		return err
	}
	if err := a.printArchive(a.env.Out, archiveLine{
		Kind: "imported", Aggregates: done.Aggregates, Events: done.Events, Bytes: done.Bytes, LeftOut: done.LeftOut,
		Present: done.Present, SnapshotsLeftOut: done.SnapshotsLeftOut, Different: different,
	}); err != nil {
		return err
	}
	if different > 0 {
		return fmt.Errorf("different history: %s of the journal are not those of the archive", output.Counted(different, "aggregate", "aggregates"))
	}
	return nil
}
