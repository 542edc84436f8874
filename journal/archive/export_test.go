package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

func TestAnExportThatWasCutAtAnyByteGoesOn(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, from store) {
		from.write(t, account("1"), 1, 3, stateOf(2))
		from.write(t, account("2"), 1, 1)
		from.write(t, account("3"), 1, 30)
		whole := from.export(t)
		header := bytes.IndexByte(whole, '\n') + 1
		for cut := 0; cut <= len(whole); cut++ {
			if around := whole[max(0, cut-2):min(len(whole), cut+2)]; cut%1009 != 0 && !bytes.Contains(around, []byte("}\n{")) && cut < len(whole)-2 {
				continue // test all places around the ends of lines, and some others
			}
			position, err := archive.ResumePosition(bytes.NewReader(whole[:cut]))
			require.NoError(t, err, "cut at %d", cut)
			require.LessOrEqual(t, position.Offset, int64(cut))
			if cut < header {
				require.Zero(t, position)
				continue
			}
			require.Equal(t, cut == len(whole), position.Complete)

			out := bytes.NewBuffer(bytes.Clone(whole[:position.Offset]))
			done, err := archive.Export(t.Context(), from.Journal, out, archive.ExportOptions{From: position})
			require.NoError(t, err)
			require.Equal(t, string(whole), out.String(), "cut at %d", cut)
			require.EqualValues(t, len(whole), done.Bytes)
		}
	})
}

func TestAnExportGoesOnAfterDamage(t *testing.T) {
	t.Parallel()
	from, _ := pair(t)
	from.write(t, account("1"), 1, 3)
	from.write(t, account("2"), 1, 3)
	whole := from.export(t)
	for i := bytes.IndexByte(whole, '\n') + 1; i < len(whole); i += 5 {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1
		position, err := archive.ResumePosition(bytes.NewReader(damaged))
		require.NoError(t, err)
		out := bytes.NewBuffer(damaged[:position.Offset])
		_, err = archive.Export(t.Context(), from.Journal, out, archive.ExportOptions{From: position})
		require.NoError(t, err)
		require.Equal(t, string(whole), out.String(), "damaged at %d", i)
	}
}

func TestResumePositionRefusesWhatIsNoArchive(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"notes of mine\n", "{}\n", "[1,2", `{"kind":"archive","format":"else"}` + "\n", `{"kind":"archive","format":"millrace-archive","version":2}` + "\n"} {
		_, err := archive.ResumePosition(bytes.NewBufferString(text))
		require.ErrorIs(t, err, archive.ErrNotArchive, text)
	}
}

func TestAnExportIsNotResumedWithAnotherJournal(t *testing.T) {
	t.Parallel()
	from, other := pair(t)
	from.write(t, account("1"), 1, 3)
	other.write(t, account("2"), 1, 3)
	whole := from.export(t)
	for _, text := range [][]byte{whole, whole[:len(whole)-1], whole[:bytes.IndexByte(whole, '\n')+1]} {
		position, err := archive.ResumePosition(bytes.NewReader(text))
		require.NoError(t, err)
		var out bytes.Buffer

		_, err = archive.Export(t.Context(), other.Journal, &out, archive.ExportOptions{From: position})

		var refused *archive.OtherJournalError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, archive.OtherJournalError{Table: from.Config().Tables.Journal, Given: other.Config().Tables.Journal}, *refused)
		assert.Zero(t, out.Len())
	}
}

func TestAnExportThatFailsLeavesWhatCanBeResumed(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t, dynamotest.WithSeed(3))
	from := setup(t, db.Client(), journal.Config{})
	from.fill(t, 11, 10)
	from.write(t, account("big"), 1, 400)
	whole := from.export(t)
	failing := db.Inject(dynamotest.Refuse(refusal{}), dynamotest.On("Query", "GetItem", "Scan", "BatchGetItem"), dynamotest.Chance(0.03))
	// At least one read fails.
	db.Inject(dynamotest.Refuse(refusal{}), dynamotest.On("GetItem"), dynamotest.After(5), dynamotest.Times(1))

	var out bytes.Buffer
	runs := 0
	for done := false; !done; runs++ {
		require.Less(t, runs, 200, "it comes to an end")
		position, err := archive.ResumePosition(bytes.NewReader(out.Bytes()))
		require.NoError(t, err)
		out.Truncate(int(position.Offset))
		_, err = archive.Export(t.Context(), from.Journal, &out, archive.ExportOptions{From: position, Concurrency: 1 + runs%8})
		done = err == nil
	}
	failing.Remove()
	assert.Greater(t, runs, 1)
	assert.Equal(t, withoutHeader(whole), withoutHeader(out.Bytes()))
}

func withoutHeader(text []byte) string { return string(text[bytes.IndexByte(text, '\n')+1:]) }

// refusal is an error that the SDK does not retry.
type refusal struct{}

func (refusal) ErrorCode() string                     { return "RefusedForTheTest" }
func (refusal) ErrorMessage() string                  { return "refused for the test" }
func (refusal) ErrorFault() (fault smithy.ErrorFault) { return fault }
func (refusal) Error() string                         { return "refused for the test" }

func TestAnExportEndsWithTheErrorOfItsWriter(t *testing.T) {
	t.Parallel()
	from, _ := pair(t)
	from.fill(t, 5, 12)
	_, err := archive.Export(t.Context(), from.Journal, &fullDisk{left: 70_000}, archive.ExportOptions{})
	require.ErrorIs(t, err, errFull)
}

var errFull = errors.New("disk full")

type fullDisk struct{ left int }

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.left)
	d.left -= n
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestAnExportEndsWithItsContext(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, from store) {
		from.fill(t, 5, 12)
		_, err := archive.Export(cancelled(t), from.Journal, &bytes.Buffer{}, archive.ExportOptions{})
		require.ErrorIs(t, err, context.Canceled)

		for after := int64(0); after < 30; after += 7 {
			ctx, cancel := context.WithCancel(t.Context())
			var out bytes.Buffer
			_, err = archive.Export(ctx, from.Journal, &out, archive.ExportOptions{Progress: func(p archive.Progress) {
				if p.Aggregates > after {
					cancel()
				}
			}})
			cancel()
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
			report, err := archive.VerifyArchive(bytes.NewReader(out.Bytes()))
			require.NoError(t, err)
			for _, fault := range report.Faults {
				require.ErrorIs(t, fault, archive.ErrTorn, "it is cut off, and sound before that")
			}
		}
	})
}

func TestNothingFollowsAnAggregateThatWasCutOff(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, from store) {
		for i := range 8 {
			from.write(t, account(fmt.Sprint(i)), 1, 200)
		}
		for range 8 {
			ctx, cancel := context.WithCancel(t.Context())
			var out bytes.Buffer
			_, err := archive.Export(ctx, from.Journal, &out, archive.ExportOptions{Progress: func(archive.Progress) { cancel() }})
			require.ErrorIs(t, err, context.Canceled)
			report, err := archive.VerifyArchive(&out)
			require.NoError(t, err)
			require.Len(t, report.Faults, 1)
			require.ErrorIs(t, report.Faults[0], archive.ErrTorn)
		}
	})
}

func TestAnExportGoesOnWhileOthersWrite(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		ids := []aggregateID{account("1"), account("2"), account("3"), account("4")}
		for _, id := range ids {
			from.write(t, id, 1, 100)
		}
		ctx, stop := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		defer writers.Wait()
		defer stop()
		for _, id := range ids {
			writers.Add(1)
			go func() {
				defer writers.Done()
				version := uint64(100)
				write := func() {
					_, err := from.Journal.Internal().Append(context.WithoutCancel(ctx), storage.Commit{
						Aggregate: id, Expected: version, Events: []storage.Event{{Type: "a"}, {Type: "b"}}, Snapshot: stateOf(int(version + 2)),
					})
					assert.NoError(t, err)
					version += 2
				}
				for ctx.Err() == nil && version < 5_000 {
					write()
				}
				// Write once more after the last export. An archive can contain a packed commit
				// without the snapshot that is written after it.
				write()
			}()
		}
		var archives [][]byte
		for range 4 {
			archives = append(archives, from.export(t))
		}
		from.requireSound(t)
		stop()
		writers.Wait()

		for _, text := range archives { // each begins where the one before ended
			report, err := archive.VerifyArchive(bytes.NewReader(text))
			require.NoError(t, err)
			require.NoError(t, report.Err())
			to.imports(t, text)
			to.requireSound(t)
		}
		to.imports(t, from.export(t))
		assertSame(t, from.contents(t), to.contents(t))
	})
}

func TestAnAggregateThatIsTruncatedWhileItIsReadBeginsAnew(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	from, to := setup(t, db.Client(), journal.Config{}), setup(t, db.Client(), otherConfig)
	from.write(t, account("1"), 1, 50, stateOf(50))
	var once sync.Once
	db.Inject(dynamotest.Latency(0, 0), dynamotest.On("Query"), dynamotest.Index("journal-aid-index"),
		dynamotest.Matching(func(string, any) bool {
			once.Do(func() { assert.NoError(t, from.Truncate(t.Context(), account("1"), 31, journal.RemoveOptions{})) })
			return true
		}))

	to.imports(t, from.export(t))

	assert.Len(t, to.contents(t)[account("1")].Events, 20)
	assertSame(t, from.contents(t), to.contents(t))
}

func TestAnExportIsTheSameWithAnyConcurrency(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, from store) {
		from.fill(t, 9, 12)
		var texts []string
		for _, n := range []int{1, 2, 50} {
			var out bytes.Buffer
			_, err := archive.Export(t.Context(), from.Journal, &out, archive.ExportOptions{Concurrency: n})
			require.NoError(t, err)
			texts = append(texts, withoutHeader(out.Bytes()))
		}
		assert.Len(t, slices.Compact(texts), 1)
	})
}

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	from, _ := pair(t)
	from.write(t, account("1"), 1, 1)
	position, err := archive.ResumePosition(bytes.NewReader(from.export(t)[:250]))
	require.NoError(t, err)
	require.Positive(t, position.Offset)
	for name, o := range map[string]archive.ExportOptions{
		"negative concurrency": {Concurrency: -1},
		"type and aggregate":   {Only: archive.Selection{AggregateType: "a", Aggregate: account("1")}},
		"invalid aggregate":    {Only: archive.Selection{Aggregate: account("")}},
		"another selection":    {Only: archive.Selection{AggregateType: "a"}, From: position},
	} {
		var out bytes.Buffer
		_, err := archive.Export(t.Context(), from.Journal, &out, o)
		require.ErrorIs(t, err, archive.ErrInvalidOptions, name)
		assert.Zero(t, out.Len(), name)
	}
	_, err = archive.Export(t.Context(), nil, &bytes.Buffer{}, archive.ExportOptions{})
	require.ErrorIs(t, err, archive.ErrInvalidOptions)
	_, err = archive.Export(t.Context(), from.Journal, &bytes.Buffer{}, archive.ExportOptions{Only: archive.Selection{Aggregate: account("9")}})
	require.ErrorIs(t, err, journal.ErrNotFound)
}

func TestAnExportReadsNoFurtherThanItsWriterTakes(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	from := setup(t, db.Client(), journal.Config{})
	for i := range 60 {
		from.write(t, account(fmt.Sprint(i)), 1, 1)
	}
	recording := db.Record()
	reads := 0
	_, err := archive.Export(t.Context(), from.Journal, &bytes.Buffer{}, archive.ExportOptions{Concurrency: 2, Progress: func(p archive.Progress) {
		if p.Aggregates == 1 {
			reads = len(recording.Calls("GetItem"))
		}
	}})
	require.NoError(t, err)
	assert.LessOrEqual(t, reads, 2*6, "a head and an event for each of those that are under way or in the queue")
}

func TestAnExportOfOneAggregateThatLacksItsTotalOnlyGoesOn(t *testing.T) {
	t.Parallel()
	from, _ := pair(t)
	from.write(t, account("1"), 1, 3)
	var out bytes.Buffer
	options := archive.ExportOptions{Only: archive.Selection{Aggregate: account("1")}}
	_, err := archive.Export(t.Context(), from.Journal, &out, options)
	require.NoError(t, err)
	whole := out.String()
	out.Truncate(len(whole) - 5)
	options.From, err = archive.ResumePosition(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	assert.Equal(t, options.Only, options.From.Only)
	out.Truncate(int(options.From.Offset))
	_, err = archive.Export(t.Context(), from.Journal, &out, archive.ExportOptions{From: options.From})
	require.NoError(t, err)
	assert.Equal(t, whole, out.String())
}
