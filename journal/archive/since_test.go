package archive_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// A second archive has only what was written since the first one.
func TestAnArchiveOfWhatIsNewFollowsAnother(t *testing.T) {
	t.Parallel()
	db, to := dynamotest.New(t), dynamotest.New(t)
	open := func(db *dynamotest.DB, layout journal.Layout) *journal.Journal {
		config := journal.Config{Layout: layout, Shards: 3, Now: db.Clock().Now}
		require.NoError(t, journal.Create(t.Context(), db.Client(), config))
		j, err := journal.Open(t.Context(), db.Client(), config)
		require.NoError(t, err)
		return j
	}
	from, target := open(db, journal.Classic), open(to, journal.Packed)
	write := func(id string, expected uint64) {
		_, err := eventlog.Of(from).Append(t.Context(), eventlog.Commit{
			Aggregate: aggregate.ID{Type: "order", Value: id}, Expected: expected, Events: []eventlog.Event{{Type: "placed", Payload: []byte("x")}},
		})
		require.NoError(t, err)
	}
	move := func(o archive.ExportOptions) (exported archive.Progress, imported archive.ImportProgress) {
		var file bytes.Buffer
		exported, err := archive.Export(t.Context(), from, &file, o)
		require.NoError(t, err)
		imported, err = archive.Import(t.Context(), target, &file, archive.ImportOptions{})
		require.NoError(t, err)
		return exported, imported
	}
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		write(id, 0)
	}
	move(archive.ExportOptions{})
	db.Clock().Advance(2 * time.Hour)
	since := db.Clock().Now().Add(-time.Minute)
	write("2", 1)
	write("2", 2)
	write("6", 0)

	exported, imported := move(archive.ExportOptions{Only: archive.Selection{AggregateType: "order"}, Since: since})
	assert.EqualValues(t, 2, exported.Aggregates)
	assert.EqualValues(t, 1, imported.Present)
	for head, err := range from.Heads(t.Context(), journal.HeadsQuery{}) {
		require.NoError(t, err)
		version, err := target.Version(t.Context(), head.Aggregate)
		require.NoError(t, err)
		assert.Equal(t, head.Version, version)
	}
	_, err := archive.Export(t.Context(), from, &bytes.Buffer{}, archive.ExportOptions{Since: since})
	require.ErrorIs(t, err, archive.ErrInvalidOptions)
}
