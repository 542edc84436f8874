package archive_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

func TestVerifyFindsEachKindOfDamage(t *testing.T) {
	t.Parallel()
	x := account("x")
	event := func(kind archive.FaultKind, from, to uint64) archive.Fault {
		return archive.Fault{Kind: kind, Aggregate: x, From: from, To: to}
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, s store)
		want   []archive.Fault // without Err
	}{
		"an event is lost": {
			func(t *testing.T, s store) { s.remove(t, s.Config().Tables.Journal, s.eventKey(x, 5)) },
			[]archive.Fault{event(archive.Missing, 5, 5)},
		},
		"events are lost at both ends": {
			func(t *testing.T, s store) {
				for _, n := range []uint64{1, 2, 11, 12} {
					s.remove(t, s.Config().Tables.Journal, s.eventKey(x, n))
				}
			},
			[]archive.Fault{event(archive.Missing, 1, 2), event(archive.Missing, 11, 12)},
		},
		"the head was put forward": {
			func(t *testing.T, s store) {
				s.changeHead(t, x, item{s.Internal().Config.Attributes.Version: number(1 << 60)})
			},
			[]archive.Fault{event(archive.Missing, 13, 1<<60)},
		},
		"the head was put back": {
			func(t *testing.T, s store) {
				s.changeHead(t, x, item{s.Internal().Config.Attributes.Version: number(9)})
			},
			[]archive.Fault{event(archive.Beyond, 10, 12), event(archive.SnapshotAhead, 11, 11)},
		},
		"the head has no version": {
			func(t *testing.T, s store) { s.changeHead(t, x, item{s.Internal().Config.Attributes.Version: nil}) },
			[]archive.Fault{event(archive.Unreadable, 0, 0)},
		},
		"the head is lost": {
			func(t *testing.T, s store) {
				s.remove(t, s.Config().Tables.Snapshot, s.keyIn(s.Journal.Internal().Shard(x), x, "0"))
			},
			[]archive.Fault{event(archive.Stray, 0, 0)},
		},
		"a payload is no payload": {
			func(t *testing.T, s store) {
				s.changeEvent(t, x, 3, item{s.Internal().Config.Attributes.Payload: number(1)})
			},
			[]archive.Fault{event(archive.Unreadable, 3, 3)},
		},
		"an event says that it is another": {
			func(t *testing.T, s store) {
				s.changeEvent(t, x, 3, item{s.Internal().Config.Attributes.SequenceNumber: number(4)})
			},
			[]archive.Fault{{Kind: archive.Stray}, event(archive.Unreadable, 3, 3)},
		},
		"an event belongs to no aggregate": {
			func(t *testing.T, s store) {
				s.changeEvent(t, x, 3, item{s.Internal().Config.Attributes.AggregateID: text("else-x")})
			},
			[]archive.Fault{{Kind: archive.Stray}, event(archive.Unreadable, 3, 3)},
		},
		"an event is in another shard": {
			func(t *testing.T, s store) {
				it := s.item(t, x, 3)
				it[s.Internal().Config.Attributes.PartitionKey] = text(storage.ShardKey(x.Type, s.Journal.Internal().Shard(x)^1))
				s.put(t, s.Config().Tables.Journal, it)
			},
			[]archive.Fault{event(archive.Stray, 0, 0)},
		},
		"a head is in another shard": {
			func(t *testing.T, s store) {
				a := s.Internal().Config.Attributes
				it := s.keyIn(s.Journal.Internal().Shard(x)^1, x, "0")
				it[a.AggregateID], it[a.SequenceNumber], it[a.Version] = text(x.String()), number(0), number(12)
				s.put(t, s.Config().Tables.Snapshot, it)
			},
			[]archive.Fault{event(archive.Unreadable, 0, 0)},
		},
		"the events were truncated beyond the snapshot": {
			func(t *testing.T, s store) { s.changeHead(t, x, item{"truncated_before": number(13)}) },
			[]archive.Fault{event(archive.Uncovered, 1, 12)},
		},
	} {
		for where, config := range map[string]journal.Config{"here": {}, "elsewhere": otherConfig} {
			t.Run(name+", "+where, func(t *testing.T) {
				t.Parallel()
				s := setup(t, testdb.Client(t), config)
				s.write(t, x, 1, 12, stateOf(11))
				s.write(t, account("x-1"), 1, 12)
				s.requireSound(t)
				c.damage(t, s)

				report, err := archive.Verify(t.Context(), s.Journal, archive.VerifyOptions{})
				require.NoError(t, err)
				assert.Equal(t, c.want, faultsOf(t, report))
				require.ErrorIs(t, report.Err(), archive.ErrFaults)
				require.ErrorContains(t, report.Err(), "x: ")

				one, err := archive.Verify(t.Context(), s.Journal, archive.VerifyOptions{Only: archive.Selection{Aggregate: account("x-1")}})
				require.NoError(t, err)
				require.NoError(t, one.Err(), "the other is sound")
				assert.EqualValues(t, 12, one.Events)
				byType, err := archive.Verify(t.Context(), s.Journal, archive.VerifyOptions{Only: archive.Selection{AggregateType: x.Type}})
				require.NoError(t, err)
				assert.Len(t, byType.Faults, len(report.Faults))
			})
		}
	}
}

func (s store) put(t *testing.T, table string, it item) {
	t.Helper()
	_, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it})
	require.NoError(t, err)
}

func TestVerifyFindsNothingInASoundJournalOfAllSorts(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		for _, s := range []store{from, to} {
			s.fill(t, 77, 15)
			testjournal.Append(t, s.Journal, storage.Commit{Aggregate: account("guarded"), CommandID: "c", Events: []storage.Event{{}}})
			s.requireSound(t)
		}
	})
}

func TestVerifyIsNotDeceivedByCommitsThatShowInPart(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		s := setup(t, db.Client(), journal.Config{})
		s.write(t, account("1"), 1, 10)
		torn := db.Inject(dynamotest.Tear(func(context.Context) {
			report, err := archive.Verify(t.Context(), s.Journal, archive.VerifyOptions{Only: archive.Selection{Aggregate: account("2")}})
			assert.NoError(t, err)
			assert.Len(t, report.Faults, 1, "nothing is there yet")
		}), dynamotest.Times(1))
		s.write(t, account("1"), 11, 5)
		assert.Equal(t, 1, torn.Fired())

		// Each commit is partly visible for a while. Each inspection may meet another commit.
		db.Inject(dynamotest.Tear(dynamotest.For(2 * time.Millisecond)))
		ctx, stop := context.WithCancel(t.Context())
		var writer sync.WaitGroup
		writer.Add(1)
		go func() {
			defer writer.Done()
			for version := uint64(15); ctx.Err() == nil && version < 400; version += 5 {
				_, err := s.Journal.Internal().Append(context.WithoutCancel(ctx), storage.Commit{Aggregate: account("1"), Expected: version, Events: make([]storage.Event, 5)})
				assert.NoError(t, err)
			}
		}()
		for range 10 {
			s.requireSound(t)
		}
		stop()
		writer.Wait()
	})
}

func TestVerifyOfAnAggregateThatIsNotThereSaysSo(t *testing.T) {
	t.Parallel()
	s, _ := pair(t)
	report, err := archive.Verify(t.Context(), s.Journal, archive.VerifyOptions{Only: archive.Selection{Aggregate: account("1")}})
	require.NoError(t, err)
	require.Len(t, report.Faults, 1)
	require.ErrorIs(t, report.Faults[0], journal.ErrNotFound)

	_, err = archive.Verify(cancelled(t), s.Journal, archive.VerifyOptions{})
	require.ErrorIs(t, err, context.Canceled)
	_, err = archive.Verify(t.Context(), nil, archive.VerifyOptions{})
	require.ErrorIs(t, err, archive.ErrInvalidOptions)
	_, err = archive.Compare(t.Context(), nil, nil, archive.VerifyOptions{})
	require.ErrorIs(t, err, archive.ErrInvalidOptions)
}

func TestCompareFindsWhatVerifyCannot(t *testing.T) {
	t.Parallel()
	s, _ := pair(t)
	for i := range 9 {
		s.write(t, account(fmt.Sprint(i)), 1, 120, stateOf(120))
	}
	exported := s.export(t)
	ctx := t.Context()
	s.changeEvent(t, account("0"), 3, item{"payload": text("overwritten")})
	s.changeEvent(t, account("0"), 110, item{"event_type": text("overwritten")})
	s.remove(t, s.Config().Tables.Journal, s.eventKey(account("1"), 7))
	s.changeHead(t, account("2"), item{"version": number(100)})
	s.remove(t, s.Config().Tables.Snapshot, s.keyIn(s.Journal.Internal().Shard(account("3")), account("3"), "0"))
	s.changeHead(t, account("4"), item{"version": nil})
	s.write(t, account("5"), 121, 5)
	require.NoError(t, s.Truncate(ctx, account("6"), 50, journal.RemoveOptions{}))
	require.NoError(t, s.Delete(ctx, account("7"), 120, journal.RemoveOptions{}))
	s.changeEvent(t, account("6"), 60, item{"metadata": nil, "occurred_at": number(1)})

	report, err := archive.Compare(ctx, s.Journal, bytes.NewReader(exported), archive.VerifyOptions{})
	require.NoError(t, err)

	var got []string
	for _, fault := range report.Faults {
		got = append(got, fault.Error())
	}
	require.Len(t, got, 7, "%s", strings.Join(got, "\n"))
	assert.Equal(t, "account-0: event 3: different from the archive: it has another payload", got[0])
	assert.Equal(t, "account-0: event 110: different from the archive: it has another event type", got[1])
	assert.Contains(t, got[2], "account-1: event 7: unreadable: ")
	assert.Equal(t, "account-2: events 101 to 120: missing", got[3])
	assert.Equal(t, "account-3: events 1 to 120: missing", got[4])
	assert.Contains(t, got[5], "account-4: unreadable: ")
	assert.Equal(t, "account-6: event 60: different from the archive: it has another time", got[6])
	require.ErrorContains(t, report.Err(), "and 2 more")
	assert.EqualValues(t, 9, report.Aggregates)
}

func TestCompareFindsThatAnImportIsNotComplete(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to store) {
		from.write(t, account("1"), 1, 3)
		from.write(t, account("2"), 1, 3)
		require.NoError(t, from.Delete(t.Context(), account("2"), 3, journal.RemoveOptions{}))
		to.write(t, account("2"), 1, 3)

		report, err := archive.Compare(t.Context(), to.Journal, bytes.NewReader(from.export(t)), archive.VerifyOptions{})

		require.NoError(t, err)
		require.Len(t, report.Faults, 2)
		assert.Equal(t, archive.Fault{Kind: archive.Missing, Aggregate: account("1"), From: 1, To: 3}, report.Faults[0])
		assert.Equal(t, archive.Different, report.Faults[1].Kind)
	})
}

func TestWhatATruncationHasNotRemovedYetIsNoFault(t *testing.T) {
	t.Parallel()
	s, _ := pair(t)
	s.write(t, account("1"), 1, 12, stateOf(12))
	require.NoError(t, s.Truncate(t.Context(), account("1"), 10, journal.RemoveOptions{After: century}))
	// DynamoDB has deleted the expired event 3 before the other expired events.
	s.remove(t, s.Config().Tables.Journal, s.eventKey(account("1"), 3))
	s.requireSound(t)
}

func TestAnAggregateWithoutAHeadIsOneFaultHoweverManyPagesItIsOn(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	s := setup(t, db.Client(), journal.Config{})
	s.write(t, account("1"), 1, 12)
	s.remove(t, s.Config().Tables.Snapshot, s.keyIn(s.Journal.Internal().Shard(account("1")), account("1"), "0"))
	db.Inject(dynamotest.SmallPages(5))
	report, err := archive.Verify(t.Context(), s.Journal, archive.VerifyOptions{})
	require.NoError(t, err)
	require.Len(t, report.Faults, 1)
}

func TestVerifyNamesAnAggregateWhoseIDIsTooLongAndGoesOn(t *testing.T) {
	t.Parallel()
	s, _ := pair(t)
	long := aggregate.ID{Type: "account", Value: strings.Repeat("x", 1_010)}
	it := s.keyIn(s.Journal.Internal().Shard(long), long, "0")
	it["aid"], it["seq_nr"], it["version"] = text(long.String()), number(0), number(1)
	s.put(t, s.Config().Tables.Snapshot, it)
	for i := range 20 {
		s.write(t, account(fmt.Sprint(i)), 1, 1)
	}
	report, err := archive.Verify(t.Context(), s.Journal, archive.VerifyOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 20, report.Aggregates)
	require.Len(t, report.Faults, 1)
	assert.Equal(t, long, report.Faults[0].Aggregate)
	assert.ErrorContains(t, report.Faults[0], "at most 1003")
}

// faultsOf returns the faults of a report without their errors, which name the items.
func faultsOf(t *testing.T, report archive.Report) (faults []archive.Fault) {
	t.Helper()
	for _, fault := range report.Faults {
		if fault.Kind == archive.Unreadable || fault.Kind == archive.Stray {
			assert.ErrorAs(t, fault, new(*journal.CorruptItemError))
		}
		fault.Err = nil
		faults = append(faults, fault)
	}
	return faults
}
