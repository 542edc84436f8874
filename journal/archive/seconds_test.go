package archive_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

func TestAnImportIntoAJournalOfSecondsIsCompleteAndRepeatable(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	from, to := setup(t, client, journal.Config{}), setup(t, client, journal.Config{Classic: journal.ClassicOptions{OccurredAtUnit: time.Second}})
	from.write(t, account("1"), 1, 250)
	text := from.export(t)

	to.imports(t, text)
	report, err := archive.Compare(t.Context(), to.Journal, bytes.NewReader(text), archive.VerifyOptions{})
	require.NoError(t, err)
	require.NoError(t, report.Err())
	assert.EqualValues(t, 250, to.imports(t, text).Present, "again")
}
