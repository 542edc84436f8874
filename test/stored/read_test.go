package stored

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

var writeVersion = flag.String("stored.write", "", "write the fixture of this version, such as v1.2.3")

const fixtures = "testdata"

var layouts = []journal.Layout{journal.Classic, journal.Packed}

// With the flag stored.write the test first writes a fixture.
func TestReadsWhatReleasesHaveWritten(t *testing.T) {
	t.Parallel()
	if *writeVersion != "" {
		writeVersionTo(t, filepath.Join(fixtures, *writeVersion))
	}
	versions, err := os.ReadDir(fixtures)
	require.NoError(t, err)
	require.NotEmpty(t, versions)
	for _, version := range versions {
		for _, layout := range layouts {
			t.Run(version.Name()+"/"+string(layout), func(t *testing.T) {
				t.Parallel()
				readFixture(t, filepath.Join(fixtures, version.Name(), string(layout)), version.Name())
			})
		}
	}
}

func writeVersionTo(t *testing.T, folder string) {
	t.Helper()
	require.Regexp(t, `^v\d+\.\d+\.\d+$`, *writeVersion, "-stored.write must be a version")
	require.NoDirExists(t, folder, "a fixture never changes after its release; before it, remove the folder and write it again")
	for _, layout := range layouts {
		writeFixture(t, filepath.Join(folder, string(layout)), *writeVersion, layout)
	}
}

// The next release writes its fixture with this code.
func TestReadsWhatItHasWritten(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		folder := t.TempDir()
		writeFixture(t, folder, "next", layout)
		readFixture(t, folder, "next")
	})
}

// reader reads a fixture.
type reader struct {
	*bank
	*expected
	t      *testing.T
	folder string
}

func readFixture(t *testing.T, folder, version string) {
	t.Helper()
	e := loadExpected(t, filepath.Join(folder, expectedFile))
	require.Equal(t, version, e.Version)
	db := dynamotest.New(t)
	// The timeouts of processes are due now.
	db.Clock().Set(e.Written.Add(2 * time.Hour))
	loadTables(t, db.Client(), folder)
	// The layout is not set: Open reads it from the descriptor.
	r := &reader{open(t, db, settings{ids: &idCounter{salt: "read"}}), e, t, folder}
	require.Equal(t, e.Layout, r.Journal().Config().Layout)

	r.verifyArchive()
	r.loadAggregates()
	r.rememberCommands()
	r.importArchive()
	r.listFailures()
	r.dedup()
	stop := r.start(t)
	r.deliverTheRest()
	r.retryFailures()
	r.fireTimeouts()
	r.deliverNewEvents()
	stop()
	r.verify(r.Journal())
}

func (r *reader) archive() io.Reader {
	return bytes.NewReader(read(r.t, filepath.Join(r.folder, archiveFile)))
}

// verify checks that a journal has no faults.
func (r *reader) verify(j *journal.Journal) {
	report, err := archive.Verify(r.t.Context(), j, archive.VerifyOptions{})
	require.NoError(r.t, err)
	require.NoError(r.t, report.Err())
	require.GreaterOrEqual(r.t, int(report.Aggregates), len(r.Aggregates))
}

// verifyArchive checks that the archive and the journal have the same events and no faults.
func (r *reader) verifyArchive() {
	r.verify(r.Journal())
	report, err := archive.VerifyArchive(r.archive())
	require.NoError(r.t, err)
	require.NoError(r.t, report.Err())
	report, err = archive.Compare(r.t.Context(), r.Journal(), r.archive(), archive.VerifyOptions{})
	require.NoError(r.t, err)
	require.NoError(r.t, report.Err())
}

// loadAggregates checks the states of all aggregates, also the earlier ones.
func (r *reader) loadAggregates() {
	checkStates(r, r.accounts, true)
	checkStates(r, r.customers, true)
	for _, name := range []string{waiting, unsent} {
		p, err := r.reminders.Repository().Load(r.t.Context(), name)
		require.NoError(r.t, err)
		require.Equal(r.t, Reminder{Asked: true}, p.State)
	}
	for _, h := range r.readable(letters) {
		numbers := []uint64{}
		for record, err := range r.Journal().Events(r.t.Context(), h.ID, 1, h.Version) {
			require.NoError(r.t, err)
			require.Equal(r.t, "blue", record.Metadata["colour"])
			numbers = append(numbers, record.Number)
		}
		require.Len(r.t, numbers, int(h.Version))
	}
}

// checkStates checks the states of all aggregates of a repository.
func checkStates[S any](r *reader, repo *repository.Repository[S], earlier bool) {
	ctx := r.t.Context()
	for _, h := range r.Aggregates {
		if h.ID.Type != repo.Type() {
			continue
		}
		a, err := repo.Load(ctx, h.ID.Value)
		switch {
		case h.Deleted:
			var deleted *journal.DeletedError
			require.ErrorAs(r.t, err, &deleted, h.ID)
			continue
		case h.KeyDestroyed:
			require.ErrorIs(r.t, err, journal.ErrKeyDestroyed, h.ID)
			continue
		}
		require.NoError(r.t, err, h.ID)
		require.Equal(r.t, h.Version, a.Version, h.ID)
		equalStates(r.t, h, a.Version, a.State)
		for number := uint64(1); earlier && number <= h.Version; number++ {
			then, err := repo.LoadAtVersion(ctx, h.ID.Value, number)
			if slices.Contains(h.Lost, number) {
				var truncated *journal.TruncatedError
				require.ErrorAs(r.t, err, &truncated, "%s %d", h.ID, number)
				continue
			}
			require.NoError(r.t, err, "%s %d", h.ID, number)
			equalStates(r.t, h, number, then.State)
			if number < h.From || number < h.Version && h.Times[number].Equal(h.Times[number-1]) {
				continue // the event was removed, or the next one belongs to the same commit
			}
			then, err = repo.LoadAtTime(ctx, h.ID.Value, h.Times[number-1])
			require.NoError(r.t, err, "%s %d", h.ID, number)
			require.Equal(r.t, number, then.Version, h.ID)
			equalStates(r.t, h, number, then.State)
		}
	}
}

func equalStates(t *testing.T, h *history, number uint64, state any) {
	t.Helper()
	encoded, err := json.Marshal(state)
	require.NoError(t, err)
	require.JSONEq(t, string(h.States[number-1]), string(encoded), "%s %d", h.ID, number)
}

// rememberCommands checks that commands that were executed before are not executed again.
func (r *reader) rememberCommands() {
	ctx := r.t.Context()
	again := func(Account) (aggregate.Events[Account], error) {
		return aggregate.Events[Account]{Deposited{1_000_000}}, nil
	}
	for _, h := range r.readable(accounts.Type()) {
		for _, command := range h.Commands {
			a, err := r.accounts.Execute(ctx, h.ID.Value, again, repository.WithCommandID(command))
			require.NoError(r.t, err, command)
			require.True(r.t, a.Repeated, command)
			require.Equal(r.t, h.Version, a.Version, command)
		}
	}
	var tx repository.Transaction
	from, to := r.accounts.AddTo(&tx, payer), r.accounts.AddTo(&tx, payee)
	require.NoError(r.t, tx.Execute(ctx, func() error {
		from.Append(Deposited{-1_000_000})
		to.Append(Deposited{1_000_000})
		return nil
	}, repository.WithCommandID(transfer)))
	require.True(r.t, from.Aggregate().Repeated)
	checkStates(r, r.accounts, false)
}

// importArchive imports the archive into empty tables of each layout.
func (r *reader) importArchive() {
	for _, layout := range layouts {
		config := r.Journal().Config()
		prefix := "imported-" + string(layout) + "-"
		config = journal.Config{
			Tables: journal.Tables{Journal: prefix + "journal", Snapshot: prefix + "snapshot", Checkpoint: prefix + "checkpoint"},
			Layout: layout, Shards: 3, Encodings: config.Encodings, Now: config.Now, NewID: config.NewID,
		}
		j := testjournal.New(r.t, r.client, config)
		_, err := archive.Import(r.t.Context(), j, r.archive(), archive.ImportOptions{})
		require.NoError(r.t, err)
		r.verify(j)
		imported := testjournal.Repository(r.t, j, accounts, repository.Config{})
		checkStates(r, imported, false)
		people := testjournal.Repository(r.t, j, customers, repository.Config{})
		checkStates(r, people, false)
	}
}

// account returns the id of an account.
func account(value string) aggregate.ID { return aggregate.ID{Type: accounts.Type(), Value: value} }

// behind returns the aggregates that are parked or blocked.
func behind(t *testing.T, b *bank, group string) (all []groups.BehindAggregate) {
	t.Helper()
	for entry, err := range b.Groups().Of(group, accounts.Type()).Behind(t.Context(), aggregate.ID{}) {
		require.NoError(t, err)
		all = append(all, entry)
	}
	return all
}

// skippedBy returns the events that a group has skipped or deferred.
func skippedBy(t *testing.T, b *bank, group string) (all []groups.SkippedEvent) {
	t.Helper()
	for entry, err := range b.Groups().Of(group, accounts.Type()).Skipped(t.Context(), aggregate.ID{}, 0) {
		require.NoError(t, err)
		all = append(all, entry)
	}
	return all
}

// listFailures checks that all failures are listed.
func (r *reader) listFailures() {
	listed, err := r.Groups().List(r.t.Context())
	require.NoError(r.t, err)
	require.NotEmpty(r.t, listed)
	for _, g := range listed {
		require.Empty(r.t, g.Members, "%s on %s has been left by its member", g.Name, g.Topic)
		require.Len(r.t, g.Shards, 2)
		require.Equal(r.t, g.Name == stopping, g.Paused, g.Name)
		if g.Name == stopping {
			require.NotNil(r.t, g.Stopped)
			require.Equal(r.t, account(stopping), g.Stopped.Aggregate)
			require.EqualValues(r.t, failedEvent, g.Stopped.Number)
			require.Contains(r.t, g.Stopped.Reason, "stopping does not work")
		}
	}
	r.listBehind()
	for group, due := range map[string]bool{skipping: false, deferring: true} {
		list := skippedBy(r.t, r.bank, group)
		require.Len(r.t, list, 1, group)
		require.Equal(r.t, account(group), list[0].Aggregate)
		require.EqualValues(r.t, failedEvent, list[0].Number)
		require.Equal(r.t, Deposited{}.EventType(), list[0].EventType)
		require.Contains(r.t, list[0].Reason, group+" does not work")
		require.Equal(r.t, due, !list[0].Due.IsZero(), group)
	}
}

// listBehind checks the lists of parked and of blocked aggregates.
func (r *reader) listBehind() {
	list := behind(r.t, r.bank, parking)
	require.Len(r.t, list, 1)
	require.Equal(r.t, account(parking), list[0].Aggregate)
	require.NotNil(r.t, list[0].Parked)
	require.EqualValues(r.t, failedEvent, list[0].Next)
	require.Contains(r.t, list[0].Parked.Reason, "parking does not work")
	list = behind(r.t, r.bank, blocking)
	require.Len(r.t, list, 1)
	require.Equal(r.t, account(blocking), list[0].Aggregate)
	require.Nil(r.t, list[0].Parked)
	require.EqualValues(r.t, failedEvent, list[0].Next)
}

// handledOnce passes the message of an event of an account to a handler under dedup, and reports
// whether the handler was called.
func handledOnce(t *testing.T, b *bank, number uint64) (called bool) {
	t.Helper()
	record := journal.Record{}
	for r, err := range b.Journal().Events(t.Context(), account(long), number, number) {
		require.NoError(t, err)
		record = *r
	}
	msg := message.NewMessage(record.EventID, record.Payload)
	msg.Metadata = message.Metadata{
		"aggregate_type": record.Aggregate.Type, "aggregate_id": record.Aggregate.Value,
		"sequence_number": strconv.FormatUint(record.Number, 10),
	}
	msg.SetContext(t.Context())
	_, err := b.positions.Middleware(func(*message.Message) ([]*message.Message, error) {
		called = true
		return nil, nil
	})(msg)
	require.NoError(t, err)
	return called
}

// dedup checks that duplicates are recognised, and that other messages are not.
func (r *reader) dedup() {
	for number, want := range map[uint64]bool{1: false, 2: false} {
		require.Equal(r.t, want, handledOnce(r.t, r.bank, number), "event %d", number)
	}
	require.True(r.t, handledOnce(r.t, r.bank, 3))
	for key, want := range map[string]bool{"message 1": true, "message 2": false} {
		duplicate, err := r.keys.IsDuplicate(r.t.Context(), key)
		require.NoError(r.t, err)
		require.Equal(r.t, want, duplicate, key)
	}
}

// deliverTheRest checks that groups handle what was written after they stopped, and nothing that
// they had handled.
func (r *reader) deliverTheRest() {
	require.NoError(r.t, r.Groups().Of(stopping, accounts.Type()).Resume(r.t.Context()))
	for _, group := range recording() {
		want := r.undelivered(group)
		if group == parking {
			delete(want, account(parking).String())
		}
		require.NotEmpty(r.t, want, group)
		r.waitDelivered(group)
		require.Equal(r.t, want, r.handled.of(group), group)
	}
	r.checkSums()
}

// waitDelivered waits until a group has handled all events, except those of a parked aggregate.
func (r *reader) waitDelivered(group string) {
	for _, topic := range topicsOf(group) {
		for _, h := range r.readable(topic) {
			if group != parking || h.ID.Value != parking {
				waitApplied(r.t, r.bank, group, h.ID, h.Version)
			}
		}
	}
}

// checkSums checks that each deposit has taken effect once in the tables of the projection and of
// both generations of the read model.
func (r *reader) checkSums() {
	all, err := r.totals.Generations(r.t.Context())
	require.NoError(r.t, err)
	require.Len(r.t, all.Live, 2)
	require.Equal(r.t, secondTotals(), all.Serving)
	require.Equal(r.t, firstTotals(), all.Previous)
	for group, table := range map[string]string{
		balances: balances, all.Previous.Group(): all.Previous.Table(totals), all.Serving.Group(): all.Serving.Table(totals),
	} {
		for _, h := range r.readable(accounts.Type()) {
			waitApplied(r.t, r.bank, group, h.ID, h.Version)
			var state Account
			require.NoError(r.t, json.Unmarshal(h.States[h.Version-1], &state))
			require.Equal(r.t, state.Balance, r.balanceIn(r.t, table, h.ID.Value), "%s in %s", h.ID, table)
		}
	}
}

// retryFailures checks that the group handles failed events after an operator has retried them.
func (r *reader) retryFailures() {
	ctx := r.t.Context()
	require.NoError(r.t, r.Groups().Unpark(ctx, parking, account(parking)))
	for _, group := range []string{skipping, deferring} {
		require.NoError(r.t, r.Groups().RetrySkipped(ctx, group, account(group), failedEvent))
	}
	h := r.of(account(parking))
	waitApplied(r.t, r.bank, parking, h.ID, h.Version)
	require.Equal(r.t, r.undelivered(parking), r.handled.of(parking))
	for _, group := range []string{skipping, deferring} {
		require.Eventually(r.t, func() bool { return len(skippedBy(r.t, r.bank, group)) == 0 }, patience, 10*time.Millisecond, group)
		delivered := r.handled.of(group)[account(group).String()]
		require.EqualValues(r.t, failedEvent, delivered[len(delivered)-1], "%s", group)
	}
}

// fireTimeouts checks that the command that could not be sent is sent, and that timeouts fire.
func (r *reader) fireTimeouts() {
	for _, name := range []string{waiting, unsent} {
		p, err := r.reminders.WaitEnded(r.t.Context(), name)
		require.NoError(r.t, err)
		require.Equal(r.t, Reminder{Asked: true, Reminded: true}, p.State)
	}
	require.Eventually(r.t, func() bool {
		return len(r.sent.uuids(waiting)) == 1 && len(r.sent.uuids(unsent)) == 2
	}, patience, 10*time.Millisecond)
	require.Contains(r.t, r.sent.uuids(unsent), r.Unsent)
	require.Eventually(r.t, func() bool {
		pending := 0
		for _, err := range r.Backlog().Pending(r.t.Context(), process.BacklogQuery{}) {
			require.NoError(r.t, err)
			pending++
		}
		return pending == 0
	}, patience, 10*time.Millisecond)
}

// deliverNewEvents checks that new events follow the stored ones.
func (r *reader) deliverNewEvents() {
	for _, h := range r.readable(accounts.Type()) {
		a := testjournal.Execute(r.t, r.accounts, h.ID.Value, func(Account) (aggregate.Events[Account], error) {
			return aggregate.Events[Account]{Deposited{5}}, nil
		}, repository.WithCommandID("new"))
		require.False(r.t, a.Repeated)
		add[Account](r.t, h, r.clock.Now(), Deposited{5})
		require.Equal(r.t, h.Version, a.Version)
	}
	for _, group := range recording() {
		for _, h := range r.readable(accounts.Type()) {
			waitApplied(r.t, r.bank, group, h.ID, h.Version)
			assert.Contains(r.t, r.handled.of(group)[h.ID.String()], h.Version, "%s of %s", group, h.ID)
		}
	}
	r.checkSums()
	checkStates(r, r.accounts, false)
}

// The fixtures contain both formats of the packed layout. The first one was never released.
func TestTheLayoutCompressesFromTheSecondFormatOn(t *testing.T) {
	t.Parallel()
	for version, format := range map[string]string{"v0.0.1": "1", "v0.1.0": "2"} {
		folder := filepath.Join(fixtures, version, string(journal.Packed))
		for _, table := range []string{"journal.json", "snapshot.json"} {
			items := string(read(t, filepath.Join(folder, table)))
			assert.Equal(t, format == "2", strings.Contains(items, `"KLUv/`), "the first bytes of a frame in base64")
			if table == "journal.json" {
				assert.Regexp(t, `"millrace_format":\s*\{"N":\s*"`+format+`"\}`, items)
			}
		}
	}
}
