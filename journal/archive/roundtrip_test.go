package archive_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

func TestAnArchiveMakesTheSameJournalInAnotherPlace(t *testing.T) {
	t.Parallel()
	seeds := uint64(3)
	if testdb.IsLocal() {
		seeds = 1 // the others take a minute there
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			pairsOf(t, func(t *testing.T, from, to store) {
				from.fill(t, seed, 12)
				want := from.contents(t)

				text := from.export(t)
				done := to.imports(t, text)

				assertSame(t, want, to.contents(t))
				assert.EqualValues(t, 12, done.Aggregates)
				assert.Zero(t, done.Present)
				assert.Zero(t, done.SnapshotsLeftOut)
				from.requireSound(t)
				to.requireSound(t)

				report, err := archive.VerifyArchive(bytes.NewReader(text))
				require.NoError(t, err)
				require.NoError(t, report.Err())
				assert.Equal(t, done.Progress.Events, report.Events)
				assert.EqualValues(t, len(text), report.Bytes)

				report, err = archive.Compare(t.Context(), to.Journal, bytes.NewReader(text), archive.VerifyOptions{})
				require.NoError(t, err)
				require.NoError(t, report.Err())
				assert.Equal(t, done.Progress, report.Progress)
			}, slices.Collect(maps.Keys(pairs))...)
		})
	}
}

func TestAnArchiveOfForeignEventsDoesNotMakeThemOurs(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	from.write(t, account("1"), 1, 2)
	from.changeEvent(t, account("1"), 2, item{"event_id": nil, "event_type": nil, "commit_id": nil})

	to.imports(t, from.export(t))

	assert.NotContains(t, to.item(t, account("1"), 2), "event_id")
	assert.NotContains(t, to.item(t, account("1"), 2), "commit_id")
	assert.Contains(t, to.item(t, account("1"), 1), "event_id")
	assertSame(t, from.contents(t), to.contents(t))
}

func TestAnImportedAggregateGoesOn(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		from.write(t, account("1"), 1, 200, stateOf(200))
		to.imports(t, from.export(t))

		to.write(t, account("1"), 201, 3)

		to.requireSound(t)
		version, err := to.Version(t.Context(), account("1"))
		require.NoError(t, err)
		assert.EqualValues(t, 203, version)
	})
}

func TestOneAggregateOrTypeCanBeExportedAndImported(t *testing.T) {
	t.Parallel()
	from, _ := pair(t)
	from.write(t, account("1"), 1, 2)
	from.write(t, account("2"), 1, 3)
	user := account("1")
	user.Type = "user"
	from.write(t, user, 1, 4)
	everything := from.export(t)
	for name, only := range map[string]archive.Selection{"aggregate": {Aggregate: account("2")}, "type": {AggregateType: "account"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := from.contents(t)
			delete(want, user)
			if name == "aggregate" {
				delete(want, account("1"))
			}

			_, exported := pair(t)
			var out bytes.Buffer
			_, err := archive.Export(t.Context(), from.Journal, &out, archive.ExportOptions{Only: only})
			require.NoError(t, err)
			exported.imports(t, out.Bytes())
			assertSame(t, want, exported.contents(t))

			_, imported := pair(t)
			_, err = archive.Import(t.Context(), imported.Journal, bytes.NewReader(everything), archive.ImportOptions{Only: only})
			require.NoError(t, err)
			assertSame(t, want, imported.contents(t))
		})
	}
}

func TestAnEmptyJournalHasAnArchive(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	text := from.export(t)
	assert.Equal(t, 2, bytes.Count(text, []byte("\n")))
	_, err := archive.Import(t.Context(), to.Journal, bytes.NewReader(text), archive.ImportOptions{})
	require.NoError(t, err)
	assert.Empty(t, to.contents(t))
}

func TestProgressGrowsToTheWhole(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		from.fill(t, 7, 10)
		var out bytes.Buffer
		var last archive.Progress
		done, err := archive.Export(t.Context(), from.Journal, &out, archive.ExportOptions{Progress: func(p archive.Progress) {
			assert.Greater(t, p.Bytes, last.Bytes)
			last = p
		}})
		require.NoError(t, err)
		assert.EqualValues(t, 10, last.Aggregates)
		assert.Equal(t, last.Events, done.Events)

		var imported archive.ImportProgress
		total, err := archive.Import(t.Context(), to.Journal, &out, archive.ImportOptions{Progress: func(p archive.ImportProgress) {
			assert.Greater(t, p.Bytes, imported.Bytes)
			imported = p
		}})
		require.NoError(t, err)
		assert.Equal(t, total, imported)
		assert.Equal(t, last.Events, imported.Events)
	})
}

func TestAnImportWakesThoseWhoWatch(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		from.write(t, account("1"), 1, 120)
		var seen []uint64
		stop := to.Journal.Internal().Watch("account", func(_ aggregateID, version uint64) { seen = append(seen, version) })
		to.imports(t, from.export(t))
		stop()
		assert.Equal(t, []uint64{98, 120}, seen)
	})
}

func TestTheLargestItemsFit(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		payload := bytes.Repeat([]byte{1}, storage.MaxItemBytes-1000)
		for i := range 4 {
			testjournal.Append(t, from.Journal, storage.Commit{
				Aggregate: account("1"), Expected: uint64(i),
				Events: []storage.Event{{Payload: payload}}, Snapshot: &journal.Snapshot{Number: uint64(i + 1), Payload: payload[:380_000]},
			})
		}
		// Control characters take six bytes each in JSON.
		testjournal.Append(t, from.Journal, storage.Commit{Aggregate: account("2"), Events: []storage.Event{{
			Metadata: map[string]string{"m": string(payload)},
		}}})

		done := to.imports(t, from.export(t))

		assert.Zero(t, done.SnapshotsLeftOut)
		assertSame(t, from.contents(t), to.contents(t))
	})
}
