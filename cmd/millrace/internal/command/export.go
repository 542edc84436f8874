package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// archiveLine ends an export or an import.
type archiveLine struct {
	Kind       string `json:"kind"` // "exported", "imported"
	Aggregates int64  `json:"aggregates"`
	Events     int64  `json:"events"`
	Bytes      int64  `json:"bytes"`              // size of the archive
	LeftOut    int64  `json:"left_out,omitempty"` // aggregates that could not be read
	// For an import: events that the journal already had, snapshots that were not written, with
	// the reason of the first, and aggregates with another history.
	Present          int64  `json:"present,omitempty"`
	SnapshotsLeftOut int64  `json:"snapshots_left_out,omitempty"`
	SnapshotReason   string `json:"snapshot_reason,omitempty"`
	Different        int    `json:"different,omitempty"`
}

func (l archiveLine) String() string {
	text := fmt.Sprintf("%s, %s, %s", output.Counted(l.Aggregates, "aggregate", "aggregates"),
		output.Counted(l.Events, "event", "events"), output.Bytes(l.Bytes))
	if l.Present > 0 {
		text += fmt.Sprintf(", %s already present", output.Counted(l.Present, "event", "events"))
	}
	if l.SnapshotsLeftOut > 0 {
		text += fmt.Sprintf(", %s left out", output.Counted(l.SnapshotsLeftOut, "snapshot", "snapshots"))
		if l.SnapshotsLeftOut == 1 {
			text += " (" + l.SnapshotReason + ")"
		} else {
			text += " (the first one: " + l.SnapshotReason + ")"
		}
	}
	if l.LeftOut > 0 {
		text += fmt.Sprintf(", %s left out", output.Counted(l.LeftOut, "aggregate", "aggregates"))
	}
	return text
}

func (a *app) printArchive(to io.Writer, l archiveLine) error {
	if a.json {
		return output.NewEncoder(to).Encode(l)
	}
	_, err := fmt.Fprintf(to, "%s %s\n", l.Kind, l)
	return err
}

type exportOptions struct {
	only           selection
	resume         bool
	since          string
	skipUnreadable bool
}

func (a *app) export() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export FILE [flags]",
		Short: "Write an archive of the journal",
		Long: `Write an archive of the journal, or of the aggregates that --type and --id select, as JSON lines.
Each aggregate is consistent: it has the events of one moment, with its snapshot. Payloads are
written as they are stored. Applications can write events meanwhile. An archive is as confidential as
the journal, so only the owner of the file can read it. FILE - is standard output; the result then
goes to standard error.

--resume continues an interrupted export of the same journal table. It also begins a new one if there
is no file. An export that fails before its first aggregate leaves no file.

--since reads the index by time, which can lag by moments. In the classic layout it uses the dates of
events. So it leaves out an aggregate whose new events all have earlier dates, as after an import or
from a machine with a wrong clock.

It reads all heads twice and all events once. Events cost half a read unit for each 4 KB in the
classic layout, and one in the packed layout.`,
		Example: "  millrace export backup.jsonl\n  millrace export backup.jsonl --resume\n  millrace export --type account --id 42 - | gzip > account-42.jsonl.gz",
		Args:    wants("FILE"),
		RunE:    a.does(func(cmd *cobra.Command, args []string) error { return a.runExport(cmd.Context(), args[0], o) }),
	}
	o.only.register(cmd)
	cmd.Flags().BoolVar(&o.resume, "resume", false, "continue an interrupted archive, with its --type and --id; begin it if there is no file")
	cmd.Flags().StringVar(&o.since, "since", "", "only aggregates of --type with events since a `time`, such as 24h (ago) or 2006-01-02T15:04:05Z, to update a journal after an earlier import")
	cmd.Flags().BoolVar(&o.skipUnreadable, "skip-unreadable", false,
		"leave out aggregates that cannot be read; the archive lists them, and the exit code is 1")
	return cmd
}

func (a *app) runExport(ctx context.Context, path string, o exportOptions) (err error) {
	only, err := o.only.get()
	switch {
	case err != nil:
		return err
	case o.since != "" && (only.AggregateType == "" || o.resume):
		return wrongUsage("--since needs --type, and excludes --resume: an interrupted export has to begin again")
	case o.resume && path == "-":
		return wrongUsage("--resume needs a file: an archive on standard output cannot be continued")
	}
	with := archive.ExportOptions{Only: only}
	var since moment
	if o.since != "" {
		if since, err = parseMoment(o.since); err != nil || since.isBeginning() {
			return wrongUsage("--since is %q: want a duration before now such as 10m or 36h, or a time such as 2006-01-02T15:04:05Z", o.since)
		}
	}
	j, err := a.open(ctx)
	if err != nil {
		return err
	}
	if with.Since, err = since.start("since", j); err == nil {
		err = knownTopic(ctx, j, o.only.aggregateType)
	}
	if err != nil {
		return err // before the file is created
	}
	var done archive.Progress
	hasNone := func() bool { return with.From.Offset == 0 && done.Aggregates+done.Events+done.LeftOut == 0 }
	result, archiveTo := a.env.Err, a.env.Out
	if path != "-" {
		file, position, openErr := openArchive(j, path, o, only)
		if openErr != nil {
			return openErr
		}
		defer func() {
			err = errors.Join(err, file.Sync(), file.Close())
			if err != nil && hasNone() {
				err = errors.Join(err, os.Remove(path)) // it would block the next export
			}
		}()
		with.From, archiveTo, result = position, file, a.env.Out
	}
	if o.skipUnreadable {
		with.Unreadable = func(id aggregate.ID, err error) error {
			a.note("millrace: left out %s: %v", id, err)
			return nil
		}
	}
	progress := a.showProgress()
	with.Progress = func(p archive.Progress) {
		progress.Show(func(elapsed time.Duration) string { return progressText(p, with.From.Offset, elapsed) })
	}
	done, err = archive.Export(ctx, j, archiveTo, with)
	progress.Done()
	switch {
	case err != nil && path != "-" && !hasNone():
		a.next = fmt.Sprintf("%s so far. `millrace export %s --resume` continues.", output.Counted(done.Events, "event", "events"), path)
		return err
	case err != nil:
		return err
	}
	if err := a.printArchive(result, archiveLine{
		Kind: "exported", Aggregates: done.Aggregates, Events: done.Events, Bytes: done.Bytes, LeftOut: done.LeftOut,
	}); err != nil {
		return err
	}
	if done.LeftOut > 0 {
		return fmt.Errorf("%s could not be read: `millrace verify` shows the faults", output.Counted(done.LeftOut, "aggregate", "aggregates"))
	}
	return nil
}

// openArchive creates the file, or opens it after its last complete aggregate.
func openArchive(j *journal.Journal, path string, o exportOptions, only archive.Selection) (_ *os.File, _ archive.Position, err error) {
	if !o.resume {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		switch {
		case errors.Is(err, os.ErrExist) && o.since != "":
			err = fmt.Errorf("%s already exists: delete it, or choose another name", path)
		case errors.Is(err, os.ErrExist):
			err = fmt.Errorf("%s already exists: continue it with --resume, or choose another name", path)
		}
		return file, archive.Position{}, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, archive.Position{}, err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	position, err := archive.ResumePosition(file)
	if err != nil {
		return nil, position, err
	}
	if position.Offset > 0 && only != (archive.Selection{}) && only != position.Only {
		return nil, position, wrongUsage("%s was begun with another --type or --id: leave them out to continue it", path)
	}
	if err := position.Check(j); err != nil {
		return nil, position, err
	}
	if err := file.Truncate(position.Offset); err != nil {
		return nil, position, err
	}
	_, err = file.Seek(position.Offset, io.SeekStart)
	return file, position, err
}

// progressText returns the progress of an archive. begun is the number of bytes from earlier runs.
func progressText(p archive.Progress, begun int64, elapsed time.Duration) string {
	return fmt.Sprintf("%s, %s, %s, %s a second", output.Counted(p.Aggregates, "aggregate", "aggregates"),
		output.Counted(p.Events, "event", "events"), output.Bytes(p.Bytes), output.Bytes(rate(p.Bytes-begun, elapsed)))
}
