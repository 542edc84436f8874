package archive_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// inCommits writes events 1 to 12 of an aggregate in commits of three, and a snapshot of event 9.
func (s store) inCommits(t *testing.T, id aggregate.ID) {
	t.Helper()
	s.write(t, id, 1, 3)
	s.write(t, id, 4, 3)
	s.write(t, id, 7, 3, stateOf(9))
	s.write(t, id, 10, 3)
}

// move moves a commit to another place in its aggregate, without using the journal.
func (s store) move(t *testing.T, id aggregate.ID, from, to uint64) {
	t.Helper()
	it := s.item(t, id, from)
	s.remove(t, s.Config().Tables.Journal, s.eventKey(id, from))
	for name, value := range s.eventKey(id, to) {
		it[name] = value
	}
	s.put(t, s.Config().Tables.Journal, it)
}

func TestVerifyFindsEachKindOfDamageInThePackedLayout(t *testing.T) {
	t.Parallel()
	x := account("x")
	event := func(kind archive.FaultKind, from, to uint64) archive.Fault {
		return archive.Fault{Kind: kind, Aggregate: x, From: from, To: to}
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, s store)
		want   []archive.Fault // without Err
	}{
		"a commit is lost": {
			func(t *testing.T, s store) { s.lose(t, x, 4) },
			[]archive.Fault{event(archive.Missing, 4, 6), event(archive.Unreadable, 7, 7)},
		},
		"the first commit is lost": {
			// The index of aggregates lists an aggregate by its first commit. Without that commit,
			// the others are found by the scan.
			func(t *testing.T, s store) { s.lose(t, x, 1) },
			[]archive.Fault{event(archive.Stray, 0, 0)},
		},
		"the last commits are lost, and a snapshot has seen them": {
			func(t *testing.T, s store) { s.lose(t, x, 10); s.lose(t, x, 7) },
			[]archive.Fault{event(archive.SnapshotAhead, 9, 9)},
		},
		"others were written in the place of lost ones": {
			func(t *testing.T, s store) {
				s.lose(t, x, 10)
				s.lose(t, x, 7)
				s.write(t, x, 7, 3)
			},
			[]archive.Fault{event(archive.SnapshotMismatch, 9, 9)},
		},
		"a commit lies within another": {
			func(t *testing.T, s store) { s.move(t, x, 10, 9) },
			[]archive.Fault{event(archive.Unreadable, 9, 9)},
		},
		"a commit has another number of events": {
			func(t *testing.T, s store) { s.changeEvent(t, x, 10, item{"n": number(2)}) },
			[]archive.Fault{event(archive.Missing, 11, 11), event(archive.Unreadable, 10, 10)},
		},
		"the events of a commit are gone": {
			func(t *testing.T, s store) { s.changeEvent(t, x, 10, item{"e": nil}) },
			[]archive.Fault{event(archive.Missing, 10, 12)},
		},
		"the events of a commit cannot be read": {
			func(t *testing.T, s store) {
				s.changeEvent(t, x, 4, item{"e": &types.AttributeValueMemberB{Value: []byte("events")}})
			},
			[]archive.Fault{event(archive.Unreadable, 4, 4), event(archive.Missing, 5, 6)},
		},
		"a commit has no id": {
			func(t *testing.T, s store) { s.changeEvent(t, x, 4, item{"c": nil}) },
			[]archive.Fault{event(archive.Unreadable, 4, 4), event(archive.Missing, 5, 6), event(archive.Unreadable, 7, 7)},
		},
		"the index of aggregates lacks it": {
			func(t *testing.T, s store) { s.changeEvent(t, x, 1, item{"a": nil}) },
			[]archive.Fault{event(archive.Stray, 0, 0)},
		},
		"the index of aggregates has it in another shard": {
			func(t *testing.T, s store) {
				other := s.Journal.Internal().Shard(x) ^ 1
				s.changeEvent(t, x, 1, item{"a": text(fmt.Sprint(x.Type, "/", other))})
			},
			[]archive.Fault{event(archive.Stray, 0, 0)},
		},
		"the tail has a commit in another shard": {
			func(t *testing.T, s store) {
				other := s.Journal.Internal().Shard(x) ^ 1
				s.changeEvent(t, x, 4, item{"p": text(fmt.Sprint(x.Type, "/", other))})
			},
			[]archive.Fault{event(archive.Stray, 0, 0)},
		},
		"the snapshot for truncated events is lost": {
			func(t *testing.T, s store) {
				require.NoError(t, s.Truncate(t.Context(), x, 7, journal.RemoveOptions{}))
				key := s.eventKey(x, 0)
				s.remove(t, s.Config().Tables.Snapshot, key)
				key[s.Internal().Config.Attributes.SortKey] = number(-1)
				s.remove(t, s.Config().Tables.Snapshot, key)
			},
			[]archive.Fault{event(archive.Uncovered, 1, 6)},
		},
	} {
		for where, config := range map[string]journal.Config{"here": packed, "elsewhere": otherPacked} {
			t.Run(name+", "+where, func(t *testing.T) {
				t.Parallel()
				s := setup(t, testdb.Client(t), config)
				s.inCommits(t, x)
				s.inCommits(t, account("x-1"))
				s.requireSound(t)
				c.damage(t, s)

				report, err := archive.Verify(t.Context(), s.Journal, archive.VerifyOptions{})
				require.NoError(t, err)
				assert.ElementsMatch(t, c.want, faultsOf(t, report), "%v", report.Faults)
				require.ErrorIs(t, report.Err(), archive.ErrFaults)

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

func TestWhatCannotBeReadIsLeftOutOfAnArchiveOfThePackedLayout(t *testing.T) {
	t.Parallel()
	x := account("x")
	for name, damage := range map[string]func(t *testing.T, s store){
		"a commit is lost":                func(t *testing.T, s store) { s.lose(t, x, 4) },
		"the events of a commit are gone": func(t *testing.T, s store) { s.changeEvent(t, x, 4, item{"e": nil}) },
		"the events of a commit cannot be read": func(t *testing.T, s store) {
			s.changeEvent(t, x, 4, item{"e": &types.AttributeValueMemberB{Value: []byte("events")}})
		},
		"its last commit has no id": func(t *testing.T, s store) { s.changeEvent(t, x, 10, item{"c": nil}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := testdb.Client(t)
			from, to := setup(t, client, packed), setup(t, client, otherPacked)
			from.inCommits(t, account("1"))
			want := from.contents(t)
			from.inCommits(t, x)
			damage(t, from)

			_, err := archive.Export(t.Context(), from.Journal, &bytes.Buffer{}, archive.ExportOptions{})
			require.ErrorAs(t, err, new(*journal.CorruptItemError))
			exported, why := from.exportWithout(t, x)
			require.ErrorAs(t, why[0], new(*journal.CorruptItemError))

			assert.EqualValues(t, 1, to.imports(t, exported).LeftOut)
			assertSame(t, want, to.contents(t))
			to.requireSound(t)
		})
	}
}

// The snapshot is not in the transaction of the events. An import that is interrupted between the
// two is repeated. This matters most if no load works without the snapshot.
func TestAnImportThatWasCutOffBeforeTheSnapshotWritesItLater(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	from, to := setup(t, db.Client(), journal.Config{}), setup(t, db.Client(), packed)
	from.write(t, account("plain"), 1, 110, stateOf(110))
	from.write(t, account("plain"), 111, 10)
	from.write(t, account("short"), 1, 5, stateOf(5))
	from.write(t, account("truncated"), 1, 50, stateOf(50))
	from.write(t, account("truncated"), 51, 180)
	require.NoError(t, from.Truncate(t.Context(), account("truncated"), 11, journal.RemoveOptions{}))
	from.write(t, account("empty"), 1, 3, stateOf(3))
	require.NoError(t, from.Truncate(t.Context(), account("empty"), 4, journal.RemoveOptions{}))
	text := from.export(t)
	failing := db.Inject(dynamotest.Refuse(refusal{}), dynamotest.On("UpdateItem", "PutItem"))

	done, err := archive.Import(t.Context(), to.Journal, bytes.NewReader(text), archive.ImportOptions{
		Only: archive.Selection{Aggregate: account("plain")},
	})
	require.NoError(t, err)
	assert.EqualValues(t, 1, done.SnapshotsLeftOut)
	for _, value := range []string{"truncated", "empty"} {
		_, err = archive.Import(t.Context(), to.Journal, bytes.NewReader(text), archive.ImportOptions{
			Only: archive.Selection{Aggregate: account(value)},
		})
		require.ErrorContains(t, err, "refused for the test")
	}
	requireSoundButForSnapshots(t, to)
	failing.Remove()

	again := to.imports(t, text)
	assert.Zero(t, again.SnapshotsLeftOut)
	assertSame(t, from.contents(t), to.contents(t))
	to.requireSound(t)
}

// A load can begin with a snapshot only if the item of a commit ends with its last event.
func TestASnapshotOfAnEarlierPageIsImported(t *testing.T) {
	t.Parallel()
	from, to := pairOf(t, "classic to packed")
	for n := 1; n < 300; n += 71 {
		id := account(fmt.Sprint(n))
		from.write(t, id, 1, n, stateOf(n))
		from.write(t, id, n+1, 300-n)
	}
	assert.Zero(t, to.imports(t, from.export(t)).SnapshotsLeftOut)
	assertSame(t, from.contents(t), to.contents(t))
}
