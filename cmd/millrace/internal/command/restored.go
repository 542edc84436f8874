package command

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/store"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
)

// restoredLine reports the marked tables as JSON.
type restoredLine struct {
	Kind     string `json:"kind"` // "restored"
	Journal  string `json:"journal_table"`
	Snapshot string `json:"snapshot_table"`
}

func (a *app) restored() *cobra.Command {
	return &cobra.Command{
		Use:   "restored [flags]",
		Short: "Record that the tables were restored from a backup",
		Long: `Record in the journal table that the tables were restored from a backup. Run it after a restore,
before the first program opens the journal. If the snapshot table was restored under another name,
set it with --snapshot-table. Otherwise the restored journal would use the snapshots of the other
journal, and damage them.

In the packed layout, a program that opened the journal before the restore refuses commits within a
minute, until it is started again.`,
		Example: "  millrace restored\n  millrace restored --journal-table orders-journal-2 --snapshot-table orders-snapshot-2",
		Args:    wants(),
		RunE:    a.does(func(cmd *cobra.Command, _ []string) error { return a.runRestored(cmd.Context()) }),
	}
}

func (a *app) runRestored(ctx context.Context) error {
	client, err := a.connect(ctx)
	if err != nil {
		return err
	}
	names := a.tables.Tables
	names.Snapshot = "" // the stored name
	j, err := store.Open(ctx, client, journal.Config{Tables: names})
	if err != nil {
		return err
	}
	config := j.Config()
	if stored := config.Tables.Snapshot; a.tables.Snapshot == "" && a.tables.prefix != "" && stored != a.tables.newSnapshot() {
		return wrongUsage("the journal's snapshot table is %q, and with the prefix %q it would be %q: set the right one with --snapshot-table",
			stored, a.tables.prefix, a.tables.newSnapshot())
	}
	config.Tables.Snapshot = cmp.Or(a.tables.Snapshot, config.Tables.Snapshot)
	if err := journal.MarkRestored(ctx, client, config); err != nil {
		return err
	}
	tables := config.Tables
	return a.line(restoredLine{Kind: "restored", Journal: tables.Journal, Snapshot: tables.Snapshot},
		output.Field{Name: "marked as restored", Value: printable.Text(tables.Journal)},
		output.Field{Name: "its snapshots", Value: printable.Text(tables.Snapshot)},
	)
}
