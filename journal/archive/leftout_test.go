package archive_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

func TestWhatCannotBeReadIsLeftOut(t *testing.T) {
	t.Parallel()
	x, unknown := account("x"), aggregate.ID{}
	headOf := func(s store) item {
		a := s.Internal().Config.Attributes
		it := s.keyIn(s.Journal.Internal().Shard(x), x, "0")
		it[a.AggregateID], it[a.SequenceNumber], it[a.Version] = text(x.String()), number(0), number(420)
		return it
	}
	move := func(t *testing.T, s store, attribute, value string) {
		it := headOf(s)
		s.remove(t, s.Config().Tables.Snapshot, s.keyIn(s.Journal.Internal().Shard(x), x, "0"))
		it[attribute] = text(value)
		s.put(t, s.Config().Tables.Snapshot, it)
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, s store)
		id     aggregate.ID
		reason string
	}{
		"its first event is lost": {func(t *testing.T, s store) { s.lose(t, x, 1) }, x, "is missing"},
		"its last event is lost":  {func(t *testing.T, s store) { s.lose(t, x, 420) }, x, "is missing"},
		"a payload is no payload": {
			func(t *testing.T, s store) {
				s.changeEvent(t, x, 300, item{s.Internal().Config.Attributes.Payload: number(1)})
			}, x, "no binary",
		},
		"its head has no version": {
			func(t *testing.T, s store) { s.changeHead(t, x, item{s.Internal().Config.Attributes.Version: nil}) }, x, "has no version",
		},
		"its head was put back below what is truncated": {
			func(t *testing.T, s store) { s.changeHead(t, x, item{"truncated_before": number(422)}) }, x, "beyond its version",
		},
		"its head is in another shard": {
			func(t *testing.T, s store) {
				move(t, s, s.Internal().Config.Attributes.PartitionKey, storage.ShardKey(x.Type, s.Journal.Internal().Shard(x)^1))
			}, x, "is not where",
		},
		"its head has another sort key": {
			func(t *testing.T, s store) { move(t, s, s.Internal().Config.Attributes.SortKey, "account-x") }, x, "is not where",
		},
		"its head names nothing": {
			func(t *testing.T, s store) { move(t, s, s.Internal().Config.Attributes.AggregateID, "else") }, unknown, "that fits its partition",
		},
		"its head names what is too long": {
			func(t *testing.T, s store) {
				move(t, s, s.Internal().Config.Attributes.AggregateID, "account-"+strings.Repeat("x", 1100))
			}, account(strings.Repeat("x", 1100)), "is not where",
		},
	} {
		for where, config := range map[string]journal.Config{"here": {}, "elsewhere": otherConfig} {
			t.Run(name+", "+where, func(t *testing.T) {
				t.Parallel()
				client := testdb.Client(t)
				from, to := setup(t, client, config), setup(t, client, journal.Config{})
				for i := range 3 {
					from.write(t, account(fmt.Sprint(i)), 1, 3, stateOf(3))
				}
				want := from.contents(t)
				from.write(t, x, 1, 420)
				c.damage(t, from)

				var cut bytes.Buffer
				_, err := archive.Export(t.Context(), from.Journal, &cut, archive.ExportOptions{})
				require.ErrorAs(t, err, new(*journal.CorruptItemError))
				exported, why := from.exportWithout(t, c.id)
				require.ErrorAs(t, why[0], new(*journal.CorruptItemError))
				assert.ErrorContains(t, why[0], c.reason)
				assert.NotContains(t, withoutHeader(exported), `"version":420`, "nothing else of it is there")

				position, err := archive.ResumePosition(bytes.NewReader(cut.Bytes()))
				require.NoError(t, err)
				cut.Truncate(int(position.Offset))
				_, err = archive.Export(t.Context(), from.Journal, &cut, archive.ExportOptions{
					From: position, Unreadable: func(aggregate.ID, error) error { return nil },
				})
				require.NoError(t, err)
				assert.Equal(t, withoutHeader(exported), withoutHeader(cut.Bytes()), "so does one that goes on")

				assert.EqualValues(t, 1, to.imports(t, exported).LeftOut)
				assertSame(t, want, to.contents(t))
				to.requireSound(t)

				read, err := archive.VerifyArchive(bytes.NewReader(exported))
				require.NoError(t, err)
				compared, err := archive.Compare(t.Context(), to.Journal, bytes.NewReader(exported), archive.VerifyOptions{})
				require.NoError(t, err)
				for _, report := range []archive.Report{read, compared} {
					require.Len(t, report.Faults, 1)
					assert.Equal(t, archive.LeftOut, report.Faults[0].Kind)
					assert.Equal(t, c.id, report.Faults[0].Aggregate)
					assert.ErrorContains(t, report.Faults[0], c.reason)
					assert.EqualValues(t, 1, report.LeftOut)
					assert.EqualValues(t, 3, report.Aggregates)
				}
				assert.EqualValues(t, len(exported), read.Bytes)
			})
		}
	}
}

func TestAnExportWithWhatWasLeftOutGoesOnAfterACutAtAnyByte(t *testing.T) {
	t.Parallel()
	from, _ := pair(t)
	var damaged []aggregate.ID
	for i := range 12 {
		id := account(fmt.Sprint(i))
		if from.write(t, id, 1, 2); i%2 == 0 {
			from.changeEvent(t, id, 2, item{"payload": nil})
			damaged = append(damaged, id)
		}
	}
	from.headThatNamesNothing(t, 3)
	whole, _ := from.exportWithout(t, append(damaged, aggregate.ID{})...)
	for cut := bytes.IndexByte(whole, '\n') + 1; cut <= len(whole); cut += 1 + cut%101 {
		position, err := archive.ResumePosition(bytes.NewReader(whole[:cut]))
		require.NoError(t, err)
		out := bytes.NewBuffer(bytes.Clone(whole[:position.Offset]))
		done, err := archive.Export(t.Context(), from.Journal, out, archive.ExportOptions{
			From: position, Unreadable: func(aggregate.ID, error) error { return nil },
		})
		require.NoError(t, err)
		require.Equal(t, string(whole), out.String(), "cut at %d", cut)
		require.EqualValues(t, 7, done.LeftOut)
	}
	position, err := archive.ResumePosition(bytes.NewReader(whole))
	require.NoError(t, err)
	assert.EqualValues(t, 7, position.LeftOut)
	assert.True(t, position.Complete)
}

// headBeside puts a head of an aggregate into each shard except its own.
func (s store) headBeside(t *testing.T, id aggregate.ID) {
	t.Helper()
	for shard := range s.Config().Shards {
		if shard != s.Journal.Internal().Shard(id) {
			it := s.keyIn(shard, id, "0")
			it["aid"], it["seq_nr"], it["version"] = text(id.String()), number(0), number(1)
			s.put(t, s.Config().Tables.Snapshot, it)
		}
	}
}

func (s store) headThatNamesNothing(t *testing.T, shard int) {
	t.Helper()
	it := s.keyIn(shard, account("9"), fmt.Sprint("what-", tables.Add(1)))
	it["seq_nr"] = number(0)
	s.put(t, s.Config().Tables.Snapshot, it)
}

func TestAHeadBesideTheOneThatCountsIsPassedOver(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	for i := range 20 {
		from.write(t, account(fmt.Sprint(i)), 1, 1)
	}
	want := from.contents(t)
	x := account("7")
	from.headBeside(t, x)
	whole := from.export(t)
	assert.EqualValues(t, 20, to.imports(t, whole).Aggregates)
	assertSame(t, want, to.contents(t))

	end := bytes.Index(whole, []byte(`"value":"7"`))
	end += bytes.Index(whole[end:], []byte(`"kind":"end"`))
	end += bytes.IndexByte(whole[end:], '\n') + 1
	position, err := archive.ResumePosition(bytes.NewReader(whole[:end]))
	require.NoError(t, err)
	require.Equal(t, x, position.After)
	out := bytes.NewBuffer(bytes.Clone(whole[:end]))
	_, err = archive.Export(t.Context(), from.Journal, out, archive.ExportOptions{From: position})
	require.NoError(t, err)
	assert.Equal(t, string(whole), out.String(), "it goes on where that aggregate has its place")
}

func TestAnAggregateWhoseIDIsTooLongIsLeftOut(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	from.write(t, account("1"), 1, 1)
	id := account(strings.Repeat("x", aggregate.MaxIDBytes))
	// There is no room for numbers of twenty digits.
	it := from.keyIn(from.Journal.Internal().Shard(id), id, "0")
	it["aid"], it["seq_nr"], it["version"] = text(id.String()), number(0), number(1)
	from.put(t, from.Config().Tables.Snapshot, it)

	exported, why := from.exportWithout(t, id)

	require.ErrorAs(t, why[0], new(*journal.CorruptItemError))
	done := to.imports(t, exported)
	assert.EqualValues(t, 1, done.LeftOut)
	assert.EqualValues(t, 1, done.Aggregates)
}

func TestAnErrorOfUnreadableEndsTheExport(t *testing.T) {
	t.Parallel()
	from, _ := pair(t)
	for i := range 30 { // so that heads of both kinds come after the end
		from.write(t, account(fmt.Sprint(i)), 1, 1)
		from.headThatNamesNothing(t, i%7)
	}
	asked := 0
	_, err := archive.Export(t.Context(), from.Journal, &bytes.Buffer{}, archive.ExportOptions{
		Concurrency: 1, Unreadable: func(aggregate.ID, error) error { asked++; return errFull },
	})
	require.ErrorIs(t, err, errFull)
	assert.Equal(t, 1, asked)
}

func TestWhatConcernsTheRunIsNotAskedAbout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault dynamotest.Fault
		want  string
	}{
		"throttling": {dynamotest.Throttle(), "throttled"},
		"a refusal":  {dynamotest.Refuse(refusal{}), "refused for the test"},
	} {
		for _, operation := range []string{"Scan", "GetItem", "BatchGetItem", "Query"} {
			t.Run(name+" of "+operation, func(t *testing.T) {
				t.Parallel()
				db := dynamotest.New(t)
				from := setup(t, db.Client(), journal.Config{})
				from.write(t, account("1"), 1, 500)
				from.write(t, account("2"), 1, 3)
				injected := db.Inject(c.fault, dynamotest.On(operation))
				err := exportUnasked(t.Context(), t, from)
				require.Positive(t, injected.Fired())
				require.ErrorContains(t, err, c.want)
			})
		}
	}
	from, _ := pair(t)
	from.write(t, account("1"), 1, 500)
	require.ErrorIs(t, exportUnasked(cancelled(t), t, from), context.Canceled)
	t.Run("throttling of the look for a head beside the one that counts", func(t *testing.T) {
		t.Parallel()
		db := dynamotest.New(t)
		from := setup(t, db.Client(), journal.Config{})
		from.headBeside(t, account("1"))
		db.Inject(dynamotest.Throttle(), dynamotest.On("GetItem"))
		require.ErrorIs(t, exportUnasked(t.Context(), t, from), journal.ErrThrottled)
	})
	position := archive.Position{Offset: 1, After: aggregate.ID{Type: "account"}}
	_, err := archive.Export(t.Context(), from.Journal, &bytes.Buffer{}, archive.ExportOptions{From: position, Unreadable: neverAsked(t)})
	require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
	_, err = archive.Export(t.Context(), from.Journal, &bytes.Buffer{}, archive.ExportOptions{
		Only: archive.Selection{Aggregate: account("2")}, Unreadable: neverAsked(t),
	})
	require.ErrorIs(t, err, journal.ErrNotFound)
	for _, table := range []string{from.Config().Tables.Journal, from.Config().Tables.Snapshot} {
		_, err := from.client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table})
		require.NoError(t, err)
		require.ErrorIs(t, exportUnasked(t.Context(), t, from), journal.ErrTableMissing)
	}
}

func exportUnasked(ctx context.Context, t *testing.T, s store) error {
	t.Helper()
	_, err := archive.Export(ctx, s.Journal, &bytes.Buffer{}, archive.ExportOptions{Unreadable: neverAsked(t)})
	return err
}

func neverAsked(t *testing.T) func(aggregate.ID, error) error {
	return func(id aggregate.ID, err error) error {
		assert.Fail(t, "asked", "about %s: %v", id, err)
		return nil
	}
}

func TestDamageBehindPagesThatAreOutEndsTheExportAndIsLeftOutByTheNext(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	from, to := setup(t, db.Client(), journal.Config{}), setup(t, db.Client(), otherConfig)
	x := account("x")
	from.write(t, x, 1, 500)
	passes := 0
	db.Inject(dynamotest.Latency(0, 0), dynamotest.On("Query"), dynamotest.Index("journal-aid-index"),
		dynamotest.Matching(func(string, any) bool {
			if passes++; passes == 2 {
				from.lose(t, x, 499) // it could be read a moment ago
			}
			return true
		}))
	var out bytes.Buffer
	options := archive.ExportOptions{Unreadable: neverAsked(t)}
	_, err := archive.Export(t.Context(), from.Journal, &out, options)
	require.ErrorAs(t, err, new(*journal.CorruptItemError))
	_, err = archive.Import(t.Context(), to.Journal, bytes.NewReader(out.Bytes()), archive.ImportOptions{})
	require.ErrorIs(t, err, archive.ErrTorn)
	require.Contains(t, out.String(), `"number":490`)

	position, err := archive.ResumePosition(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	out.Truncate(int(position.Offset))
	var told archive.Progress
	options.From, options.Progress = position, func(p archive.Progress) { told = p }
	options.Unreadable = func(aggregate.ID, error) error { return nil }
	done, err := archive.Export(t.Context(), from.Journal, &out, options)
	require.NoError(t, err)
	assert.Equal(t, archive.Progress{LeftOut: 1, Bytes: int64(out.Len())}, done)
	assert.EqualValues(t, 1, told.LeftOut)
	position, err = archive.ResumePosition(&out)
	require.NoError(t, err)
	assert.Equal(t, archive.Position{LeftOut: 1, Offset: done.Bytes, Table: from.Config().Tables.Journal, Complete: true}, position)
}

func TestWhatWasLeftOutOfAnotherSelectionIsNotTold(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	from.write(t, account("1"), 1, 2)
	from.write(t, account("2"), 1, 2)
	from.lose(t, account("2"), 1)
	from.headThatNamesNothing(t, 1)
	exported, _ := from.exportWithout(t, account("2"), aggregate.ID{})
	// The one without a name may be any of them.
	for id, leftOut := range map[string]int64{"1": 1, "2": 2} {
		only := archive.Selection{Aggregate: account(id)}
		done, err := archive.Import(t.Context(), to.Journal, bytes.NewReader(exported), archive.ImportOptions{Only: only})
		require.NoError(t, err)
		assert.Equal(t, leftOut, done.LeftOut, id)
		assert.Equal(t, 2-leftOut, done.Aggregates, id)
	}
}

func TestOnlyLongAggregatesAreReadTwice(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	from := setup(t, db.Client(), journal.Config{})
	reads := func(o archive.ExportOptions) int {
		recording := db.Record()
		var out bytes.Buffer
		_, err := archive.Export(t.Context(), from.Journal, &out, o)
		require.NoError(t, err)
		n := len(recording.Calls("Query"))
		assert.Equal(t, withoutHeader(from.export(t)), withoutHeader(out.Bytes()), "it is the same as ever")
		return n
	}
	asking := archive.ExportOptions{Unreadable: neverAsked(t)}
	from.write(t, account("1"), 1, 4*98)
	assert.Equal(t, 1, reads(asking))
	from.write(t, account("1"), 4*98+1, 1)
	assert.Equal(t, 2, reads(asking))
	assert.Equal(t, 1, reads(archive.ExportOptions{}))
}
