package archive_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

var (
	ctx      = context.Background()
	j, other *journal.Journal
	path     string
)

func TestTheExamplesWork(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	from.fill(t, 41, 5)
	j, other, path = from.Journal, to.Journal, filepath.Join(t.TempDir(), "journal.jsonl")
	for _, example := range []func(){ExampleExport, ExampleExport, ExampleImport, ExampleVerify, ExampleCompare} {
		example()
	}
	require.Equal(t, from.contents(t), to.contents(t))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, len(from.export(t)), info.Size())
}

// The same program begins an archive, resumes one that was interrupted, and does not change a
// complete one.
func ExampleExport() {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		log.Fatal(err)
	}

	position, err := archive.ResumePosition(file)
	if err != nil {
		log.Fatal(err) // it is another file: do not change it
	}
	if err := file.Truncate(position.Offset); err != nil {
		log.Fatal(err)
	}
	if _, err := file.Seek(position.Offset, io.SeekStart); err != nil {
		log.Fatal(err)
	}
	done, err := archive.Export(ctx, j, file, archive.ExportOptions{
		From: position,
		Progress: func(p archive.Progress) {
			fmt.Fprintf(os.Stderr, "\r%d aggregates, %d events, %d MB", p.Aggregates, p.Events, p.Bytes>>20)
		},
	})
	if err != nil {
		log.Fatal(err) // run it again
	}
	if err := file.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.Aggregates, "aggregates")
}

// Import an archive, and leave aggregates unchanged that differ from it.
func ExampleImport() {
	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}

	done, err := archive.Import(ctx, other, file, archive.ImportOptions{
		Different: func(e *archive.HistoryError) error {
			log.Print(e) // leave it unchanged and continue
			return nil
		},
	})
	if err != nil {
		log.Fatal(err) // run it again
	}
	_ = file.Close()
	fmt.Println(done.Events, "events,", done.Present, "of them existed before")
}

// Verify a journal, and print its faults.
func ExampleVerify() {
	report, err := archive.Verify(ctx, other, archive.VerifyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, fault := range report.Faults {
		fmt.Println(fault.Aggregate, fault.Kind, fault.From, fault.To)
	}
	fmt.Println(report.Aggregates, "aggregates verified")
}

// Compare an archive after an import, or some time after an export.
func ExampleCompare() {
	file, err := os.Open(path)
	if err != nil {
		log.Fatal(err)
	}

	report, err := archive.Compare(ctx, other, file, archive.VerifyOptions{})
	if err != nil {
		log.Fatal(err)
	}
	_ = file.Close()
	if err := report.Err(); err != nil {
		log.Fatal(err)
	}
}
