package layouttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Run tests what the engine promises of every layout. The tests of package journal cover more, such
// as faults and limits.
func Run(t *testing.T, kind engine.Kind) {
	t.Helper()
	for name, test := range map[string]func(w world){
		"events are read as they were written":                  world.readsWhatWasWritten,
		"a commit on another version is a conflict":             world.refusesAnotherVersion,
		"a command is executed once":                            world.executesACommandOnce,
		"a load starts at the snapshot":                         world.loadsFromTheSnapshot,
		"truncated events are gone and the aggregate continues": world.truncates,
		"a deleted aggregate stays deleted":                     world.deletes,
		"several aggregates change together or not at all":      world.commitsTogether,
		"heads and the tail show everything":                    world.listsEverything,
		"a key tells its event":                                 world.tellsTheEventOfAKey,
		"a commit whose reply is lost is written once":          world.survivesALostReply,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(world{t, kind, Open(t, kind)})
		})
	}
}

type world struct {
	*testing.T
	kind engine.Kind
	*engine.Engine
}

func account(value string) aggregate.ID { return aggregate.ID{Type: "account", Value: value} }

// commit returns a commit of n events.
func commit(id aggregate.ID, expected uint64, n int) storage.Commit {
	c := storage.Commit{Aggregate: id, Expected: expected, Proven: true}
	for i := range n {
		c.Events = append(c.Events, storage.Event{
			ID: fmt.Sprintf("%s-%d", id.Value, expected+uint64(i)+1), Type: "noted", Payload: fmt.Append(nil, "payload ", i),
			Metadata: aggregate.Metadata{"n": fmt.Sprint(i)},
		})
	}
	return c
}

func (w world) write(c storage.Commit) storage.Receipt {
	w.Helper()
	receipt, err := w.Append(w.Context(), c)
	require.NoError(w, err)
	return receipt
}

func (w world) read(id aggregate.ID) (records []*journaltype.Record) {
	w.Helper()
	for r, err := range w.AllEvents(w.Context(), id) {
		require.NoError(w, err)
		records = append(records, r)
	}
	return records
}

func (w world) numbers(id aggregate.ID) (numbers []uint64) {
	w.Helper()
	for _, r := range w.read(id) {
		numbers = append(numbers, r.Number)
	}
	return numbers
}

func (w world) readsWhatWasWritten() {
	id := account("ada/1 ü")
	first := w.write(commit(id, 0, 3))
	w.write(commit(id, 3, 2))

	records := w.read(id)
	require.Len(w, records, 5)
	assert.Equal(w, []uint64{1, 2, 3, 4, 5}, w.numbers(id))
	want := commit(id, 0, 3).Events[1]
	assert.Equal(w, &journaltype.Record{
		Aggregate: id, Number: 2, EventID: want.ID, EventType: want.Type, Payload: want.Payload, Metadata: want.Metadata,
		OccurredAt: first.OccurredAt, WrittenAt: first.OccurredAt, CommitID: first.CommitID,
	}, records[1])
	version, err := w.Version(w.Context(), id)
	require.NoError(w, err)
	assert.EqualValues(w, 5, version)
}

func (w world) refusesAnotherVersion() {
	id := account("1")
	w.write(commit(id, 0, 2))
	w.write(commit(id, 2, 2))
	for _, expected := range []uint64{0, 1, 2, 3, 5} {
		c := commit(id, expected, 1)
		c.Proven = expected == 2 // it was a version once
		_, err := w.Append(w.Context(), c)
		require.ErrorIs(w, err, journaltype.ErrConflict, expected)
	}
	assert.Equal(w, []uint64{1, 2, 3, 4}, w.numbers(id))
}

func (w world) executesACommandOnce() {
	id := account("1")
	for n, events := range []int{2, 0} {
		c := commit(id, 2*uint64(n), events)
		c.CommandID = fmt.Sprint("command-", n)
		receipt := w.write(c)

		c = commit(id, 2, 1)
		c.CommandID = fmt.Sprint("command-", n)
		_, err := w.Append(w.Context(), c)
		var duplicate *journaltype.DuplicateCommandError
		require.ErrorAs(w, err, &duplicate)
		assert.Equal(w, receipt.CommitID, duplicate.CommitID)
		stored, found, err := w.Command(w.Context(), id, c.CommandID)
		require.NoError(w, err)
		assert.True(w, found)
		assert.EqualValues(w, 2, stored.Version)
	}
	assert.Equal(w, []uint64{1, 2}, w.numbers(id))
}

// loaded returns the number of the snapshot from which a load starts, and those of later events.
func (w world) loaded(id aggregate.ID) (from uint64, later []uint64) {
	w.Helper()
	_, err := w.Load(w.Context(), id, func(head journaltype.Head, snapshotErr error) uint64 {
		assert.NoError(w, snapshotErr)
		from, later = 0, nil
		if head.Snapshot != nil {
			from = head.Snapshot.Number
		}
		return from
	}, func(r *journaltype.Record) error {
		later = append(later, r.Number)
		return nil
	})
	require.NoError(w, err)
	return from, later
}

func (w world) withSnapshot(c storage.Commit) storage.Commit {
	c.Snapshot = &journaltype.Snapshot{Number: c.Version(), Payload: []byte("state"), Schema: 1}
	return c
}

func (w world) loadsFromTheSnapshot() {
	id := account("1")
	w.write(w.withSnapshot(commit(id, 0, 4)))
	w.write(commit(id, 4, 2))

	from, later := w.loaded(id)
	assert.EqualValues(w, 4, from)
	assert.Equal(w, []uint64{5, 6}, later)
}

func (w world) truncates() {
	id := account("1")
	w.write(w.withSnapshot(commit(id, 0, 4)))
	require.ErrorIs(w, w.Truncate(w.Context(), id, 6, journaltype.RemoveOptions{}), journaltype.ErrNotCovered)
	require.NoError(w, w.Truncate(w.Context(), id, 5, journaltype.RemoveOptions{}))
	w.write(commit(id, 4, 1))

	var truncated *journaltype.TruncatedError
	for _, err := range w.Events(w.Context(), id, 1, 5) {
		if err != nil {
			require.ErrorAs(w, err, &truncated)
		}
	}
	require.NotNil(w, truncated)
	assert.EqualValues(w, 5, truncated.Before)
	assert.Equal(w, []uint64{5}, w.numbers(id))
	from, later := w.loaded(id)
	assert.EqualValues(w, 4, from)
	assert.Equal(w, []uint64{5}, later)
}

func (w world) deletes() {
	id := account("1")
	w.write(commit(id, 0, 2))
	require.ErrorIs(w, w.Delete(w.Context(), id, 1, journaltype.RemoveOptions{}), journaltype.ErrConflict)
	require.NoError(w, w.Delete(w.Context(), id, 2, journaltype.RemoveOptions{}))
	require.NoError(w, w.Delete(w.Context(), id, 2, journaltype.RemoveOptions{}), "again")

	var deleted *journaltype.DeletedError
	_, err := w.Append(w.Context(), commit(id, 2, 1))
	require.ErrorAs(w, err, &deleted)
	assert.EqualValues(w, 2, deleted.Version)
	_, err = w.Version(w.Context(), id)
	require.ErrorAs(w, err, &deleted)
}

func (w world) commitsTogether() {
	a, b, c := account("a"), account("b"), account("c")
	w.write(commit(a, 0, 1))
	joint := func(expected uint64) storage.Joint {
		return storage.Joint{Parts: []storage.Commit{commit(a, expected, 1), commit(b, 0, 2), commit(c, 0, 1)}}
	}
	_, err := w.AppendJoint(w.Context(), joint(0))
	require.ErrorIs(w, err, journaltype.ErrConflict)
	_, err = w.Version(w.Context(), b)
	require.ErrorIs(w, err, journaltype.ErrNotFound)

	receipts, err := w.AppendJoint(w.Context(), joint(1))
	require.NoError(w, err)
	assert.Len(w, receipts, 3)
	assert.Equal(w, []uint64{1, 2}, w.numbers(a))
	assert.Equal(w, []uint64{1, 2}, w.numbers(b))
	require.NoError(w, w.Unchanged(w.Context(), []storage.Place{{Aggregate: a, Version: 2}, {Aggregate: b, Version: 2}}))
	require.ErrorIs(w, w.Unchanged(w.Context(), []storage.Place{{Aggregate: a, Version: 1}, {Aggregate: b, Version: 2}}), journaltype.ErrConflict)
}

func (w world) listsEverything() {
	want := map[aggregate.ID]uint64{}
	for n := range 12 {
		id := account(fmt.Sprint(n))
		w.write(commit(id, 0, n%3+1))
		w.write(commit(id, uint64(n%3+1), 2))
		want[id] = uint64(n%3 + 3)
	}
	w.write(commit(aggregate.ID{Type: "other", Value: "1"}, 0, 1))

	heads, tail := map[aggregate.ID]uint64{}, map[aggregate.ID]uint64{}
	for shard := range w.Config.Shards {
		query := storage.HeadsOfShard{AggregateType: "account", Shard: shard, Consistent: true}
		for page, err := range w.ShardHeads(w.Context(), query, func(c *journaltype.CorruptItemError) { w.Error(c) }) {
			require.NoError(w, err)
			for _, h := range page {
				assert.NotContains(w, heads, h.Aggregate)
				heads[h.Aggregate] = h.Version
			}
		}
		for q, more := (storage.TailQuery{AggregateType: "account", Shard: shard, Limit: 2}), true; more; {
			page, err := w.TailShard(w.Context(), q)
			require.NoError(w, err)
			assert.Empty(w, page.Corrupt)
			for _, r := range page.Records {
				tail[r.Aggregate]++
			}
			q.After, more = page.Next, page.More
		}
	}
	assert.Equal(w, want, heads)
	assert.Equal(w, want, tail)
}

// tellsTheEventOfAKey takes the keys from the table, as its stream shows them.
func (w world) tellsTheEventOfAKey() {
	want := map[aggregate.ID]uint64{}
	for _, id := range []aggregate.ID{account("1"), account("a-b-7"), account("x/ü~"), {Type: "the-other/type", Value: "-1"}} {
		w.write(commit(id, 0, 1))
		c := commit(id, 1, 2)
		c.CommandID = "command of " + id.Value
		w.write(c)
		w.write(storage.Commit{Aggregate: id, Expected: 3, Proven: true, CommandID: "without events"})
		want[id] = 3
	}
	_, err := w.AppendJoint(w.Context(), storage.Joint{CommandID: "joint", Parts: []storage.Commit{commit(account("1"), 3, 1), commit(account("2"), 0, 1)}})
	require.NoError(w, err)
	want[account("1")], want[account("2")] = 4, 1

	shown := map[aggregate.ID]uint64{}
	for page := dynamodb.NewScanPaginator(w.Given, &dynamodb.ScanInput{TableName: &w.Config.Tables.Journal}); page.HasMorePages(); {
		found, err := page.NextPage(w.Context())
		require.NoError(w, err)
		for _, it := range found.Items {
			if id, number, ok := w.EventOf(it); ok {
				shown[id] = max(shown[id], number)
			}
		}
	}
	for id, last := range want {
		assert.Positive(w, shown[id], "%v", id)
		assert.LessOrEqual(w, shown[id], last+1, "%v: only the place after the last event", id)
		delete(shown, id)
	}
	assert.Empty(w, shown)

	attributes := w.Config.Attributes
	for _, key := range []table.Item{
		{},
		w.Layout.DescriptorKey(), w.Layout.CommandKey("1"),
		{attributes.PartitionKey: table.StringValue("account/1"), attributes.SortKey: table.StringValue("account-1-1")},
		{attributes.PartitionKey: table.StringValue("account-1"), attributes.SortKey: table.StringValue("account-1-0")},
		{attributes.PartitionKey: table.StringValue("account-1"), attributes.SortKey: table.StringValue("-")},
		{attributes.PartitionKey: table.StringValue("account/1"), attributes.SortKey: &types.AttributeValueMemberN{Value: "-5"}},
		{attributes.PartitionKey: table.StringValue("/1"), attributes.SortKey: &types.AttributeValueMemberN{Value: "5"}},
		{attributes.PartitionKey: table.StringValue("account/1"), attributes.SortKey: &types.AttributeValueMemberN{Value: "1e3"}},
	} {
		_, _, ok := w.EventOf(key)
		assert.False(w, ok, "%v", key)
	}
}

func (w world) survivesALostReply() {
	proxy := dynamotest.NewProxy(w.T, testdb.Client(w.T))
	w.Engine = create(w.T, proxy.Client(), w.kind)
	id := account("1")
	for expected := range uint64(3) {
		fault := proxy.Inject(dynamotest.LoseReply(), dynamotest.On("PutItem", "TransactWriteItems"), dynamotest.Times(1))
		receipt, err := w.Append(context.WithoutCancel(w.Context()), commit(id, expected, 1))
		require.NoError(w, err)
		assert.Equal(w, expected+1, receipt.Version)
		fault.Remove()
	}
	assert.Equal(w, []uint64{1, 2, 3}, w.numbers(id))
}
