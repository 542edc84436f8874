package archive_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

func TestAnImportThatWasCutAtAnyByteGoesOn(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		from.write(t, account("1"), 1, 120, stateOf(120))
		from.write(t, account("2"), 1, 230, stateOf(230))
		require.NoError(t, from.Truncate(t.Context(), account("2"), 11, journal.RemoveOptions{}))
		from.write(t, account("3"), 1, 2)
		require.NoError(t, from.Delete(t.Context(), account("3"), 2, journal.RemoveOptions{}))
		text := from.export(t)
		for cut := 0; cut < len(text); cut += 2999 {
			_, err := archive.Import(t.Context(), to.Journal, bytes.NewReader(text[:cut]), archive.ImportOptions{})
			require.ErrorIs(t, err, archive.ErrTorn)
			requireSoundButForSnapshots(t, to)
		}
		to.imports(t, text)
		assertSame(t, from.contents(t), to.contents(t))

		again := to.imports(t, text)
		assert.Equal(t, again.Events, again.Present, "nothing is left to do")
	})
}

// requireSoundButForSnapshots requires a sound journal except for snapshots, after an incomplete
// import.
func requireSoundButForSnapshots(t *testing.T, s store) {
	t.Helper()
	report, err := archive.Verify(t.Context(), s.Journal, archive.VerifyOptions{})
	require.NoError(t, err)
	for _, fault := range report.Faults {
		require.Equal(t, archive.Uncovered, fault.Kind, "%v", fault)
	}
}

func TestAnImportUnderFaultsGoesOnUntilItIsComplete(t *testing.T) {
	t.Parallel()
	configs := []struct{ from, to journal.Config }{{packed, otherConfig}, {to: packed}, {to: otherConfig}, {packed, otherPacked}}
	for i, layouts := range configs {
		seed := uint64(i)
		t.Run("", func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				db := dynamotest.New(t, dynamotest.WithSeed(seed))
				from, config := setup(t, db.Client(), layouts.from), layouts.to
				config.RetryBudget = 30 * time.Millisecond
				to := setup(t, db.Client(), config)
				from.fill(t, 20+seed, 8)
				from.write(t, account("big"), 1, 500, stateOf(500))
				text := from.export(t)
				calm := db.Storm(0.05)
				db.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Chance(0.3))

				r := rand.New(rand.NewPCG(seed, 1))
				runs := 0
				for done := false; !done; runs++ {
					require.Less(t, runs, 300, "it comes to an end")
					ctx, cancel := context.WithCancel(t.Context())
					stopAt := r.Int64N(int64(len(text)))
					imported, err := archive.Import(ctx, to.Journal, bytes.NewReader(text), archive.ImportOptions{
						Concurrency: 1 + r.IntN(8),
						Progress: func(p archive.ImportProgress) {
							if runs < 10 && p.Bytes > stopAt {
								cancel()
							}
						},
					})
					cancel()
					require.NotErrorAs(t, err, new(*archive.HistoryError))
					require.NotErrorAs(t, err, new(*journal.CorruptItemError))
					done = err == nil && imported.SnapshotsLeftOut == 0
				}
				calm()
				assertSame(t, from.contents(t), to.contents(t))
				to.requireSound(t)
			})
		})
	}
}

func TestTwoImportsOfTheSameArchiveMeet(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		from.fill(t, 31, 10)
		from.write(t, account("big"), 1, 700, stateOf(700))
		text := from.export(t)
		ended := make(chan error)
		for range 2 {
			go func() {
				_, err := archive.Import(t.Context(), to.Journal, bytes.NewReader(text), archive.ImportOptions{})
				ended <- err
			}()
		}
		for range 2 {
			if err := <-ended; err != nil {
				assert.ErrorIs(t, err, journal.ErrConflict)
			}
		}
		to.imports(t, text)
		assertSame(t, from.contents(t), to.contents(t))
	})
}

func TestADifferentHistoryIsRefusedAndNothingOfItChanged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	x := account("x")
	for _, c := range []struct {
		name     string
		from, to func(t *testing.T, s store)
		number   uint64
		reason   string
	}{
		{
			"another event",
			func(t *testing.T, s store) { s.write(t, x, 1, 150) },
			func(t *testing.T, s store) {
				s.write(t, x, 1, 99)
				_, err := s.Journal.Internal().Append(ctx, storage.Commit{Aggregate: x, Expected: 99, Events: []storage.Event{{ID: "another"}}})
				require.NoError(t, err)
			},
			100, "event id",
		},
		{
			"another commit of the same events",
			func(t *testing.T, s store) { s.write(t, x, 1, 3) },
			func(t *testing.T, s store) { s.write(t, x, 1, 2) },
			2, "commit id",
		},
		{
			"deleted here",
			func(t *testing.T, s store) { s.write(t, x, 1, 3) },
			func(t *testing.T, s store) {
				s.write(t, x, 1, 3)
				require.NoError(t, s.Delete(ctx, x, 3, journal.RemoveOptions{}))
			},
			3, "it is deleted in the journal",
		},
		{
			"deleted there",
			func(t *testing.T, s store) {
				s.write(t, x, 1, 3)
				require.NoError(t, s.Delete(ctx, x, 3, journal.RemoveOptions{}))
			},
			func(t *testing.T, s store) { s.write(t, x, 1, 4) },
			3, "it is deleted in the archive",
		},
		{
			"deleted at another version",
			func(t *testing.T, s store) {
				s.write(t, x, 1, 3)
				require.NoError(t, s.Delete(ctx, x, 3, journal.RemoveOptions{}))
			},
			func(t *testing.T, s store) {
				s.write(t, x, 1, 4)
				require.NoError(t, s.Delete(ctx, x, 4, journal.RemoveOptions{}))
			},
			3, "different versions",
		},
		{
			"truncated beyond what is here",
			func(t *testing.T, s store) {
				s.write(t, x, 1, 9, stateOf(9))
				require.NoError(t, s.Truncate(ctx, x, 5, journal.RemoveOptions{}))
			},
			func(t *testing.T, s store) { s.write(t, x, 1, 4) },
			4, "no common event is left",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			eachPair(t, func(t *testing.T, from, to store) {
				c.from(t, from)
				c.to(t, to)
				from.write(t, account("y"), 1, 3)
				before := to.contents(t)
				text := from.export(t)

				_, err := archive.Import(t.Context(), to.Journal, bytes.NewReader(text), archive.ImportOptions{Concurrency: 1})
				var different *archive.HistoryError
				require.ErrorAs(t, err, &different)
				assert.Equal(t, x, different.Aggregate)
				assert.Equal(t, c.number, different.Number)
				assert.Contains(t, different.Reason, c.reason)

				var told []*archive.HistoryError
				_, err = archive.Import(t.Context(), to.Journal, bytes.NewReader(text), archive.ImportOptions{
					Different: func(e *archive.HistoryError) error {
						told = append(told, e)
						return nil
					},
				})
				require.NoError(t, err)
				require.Len(t, told, 1)
				after := to.contents(t)
				assert.Equal(t, before[x], after[x])
				assert.Len(t, after[account("y")].Events, 3, "the others are imported")
			})
		})
	}
}

func TestAnAggregateThatHasGoneOnOrWasTruncatedHereIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		from.write(t, account("1"), 1, 3, stateOf(3))
		from.write(t, account("2"), 1, 3, stateOf(3))
		from.write(t, account("3"), 1, 3, stateOf(3))
		text := from.export(t)
		to.imports(t, text)
		to.write(t, account("1"), 4, 2)
		require.NoError(t, to.Truncate(t.Context(), account("2"), 4, journal.RemoveOptions{}))
		require.NoError(t, to.Truncate(t.Context(), account("3"), 2, journal.RemoveOptions{}))
		before := to.contents(t)

		again := to.imports(t, text)

		assertSame(t, before, to.contents(t))
		assert.Equal(t, again.Events, again.Present)
	})
}

func TestALaterArchiveOfAnAggregateTruncatedSinceGoesOn(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		from.write(t, account("1"), 1, 9, stateOf(9))
		to.imports(t, from.export(t))
		from.write(t, account("1"), 10, 5, stateOf(14))
		require.NoError(t, from.Truncate(t.Context(), account("1"), 7, journal.RemoveOptions{}))

		to.imports(t, from.export(t))

		assert.Len(t, to.contents(t)[account("1")].Events, 14, "what is here stays")
		assert.Equal(t, from.contents(t)[account("1")].Head.Snapshot, to.contents(t)[account("1")].Head.Snapshot)
		to.requireSound(t)
	})
}

func TestNothingIsImportedOfAPageThatIsDamaged(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		from.write(t, account("1"), 1, 300)
		text := string(from.export(t))
		damaged := strings.Replace(text, `"number":150,`, `"number":150,"more":1,`, 1)

		_, err := archive.Import(t.Context(), to.Journal, strings.NewReader(damaged), archive.ImportOptions{})

		require.ErrorIs(t, err, archive.ErrDamaged)
		var line *archive.LineError
		require.ErrorAs(t, err, &line)
		assert.Equal(t, account("1"), line.Aggregate)
		assert.Len(t, to.contents(t)[account("1")].Events, 98, "the page before")
		to.requireSound(t)
	})
}

func TestAnImportThatFailsSaysSoAndEnds(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		from.fill(t, 3, 10)
		text := from.export(t)

		_, err := archive.Import(cancelled(t), to.Journal, bytes.NewReader(text), archive.ImportOptions{})
		require.ErrorIs(t, err, context.Canceled)
		_, err = archive.Import(t.Context(), to.Journal, bytes.NewReader(text), archive.ImportOptions{Concurrency: -1})
		require.ErrorIs(t, err, archive.ErrInvalidOptions)
		broken := errors.New("broken pipe")
		_, err = archive.Import(t.Context(), to.Journal, &brokenReader{text[:len(text)/2], broken}, archive.ImportOptions{})
		require.ErrorIs(t, err, broken)
	})
}

type brokenReader struct {
	text []byte
	err  error
}

func (r *brokenReader) Read(p []byte) (int, error) {
	if len(r.text) == 0 {
		return 0, r.err
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

func TestAnImportIsPatientWithTablesThatGrow(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		from, to := setup(t, db.Client(), journal.Config{}), setup(t, db.Client(), journal.Config{RetryBudget: time.Nanosecond})
		from.write(t, account("1"), 1, 3)
		throttled := db.Inject(dynamotest.Throttle(), dynamotest.On("TransactWriteItems"), dynamotest.Times(3))
		text := from.export(t)

		to.imports(t, text)

		assert.Equal(t, 3, throttled.Fired())
		assertSame(t, from.contents(t), to.contents(t))
	})
}
