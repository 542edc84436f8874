// Package layoutcheck checks what the engine promises of every layout, in a test or in a program.
package layoutcheck

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// T is the part of a *testing.T that the checks use. FailNow must not return.
type T interface {
	require.TestingT
	Helper()
	Context() context.Context
}

// Check is a check of a layout.
type Check struct {
	Name string
	run  func(w world)
}

// Checks returns all checks.
func Checks() []Check {
	return []Check{
		{"events are read as they were written", world.readsWhatWasWritten},
		{"a commit on another version is a conflict", world.refusesAnotherVersion},
		{"a command is executed once", world.executesACommandOnce},
		{"a load starts at the snapshot", world.loadsFromTheSnapshot},
		{"truncated events are gone and the aggregate continues", world.truncates},
		{"a deleted aggregate stays deleted", world.deletes},
		{"several aggregates change together or not at all", world.commitsTogether},
		{"heads and the tail show everything", world.listsEverything},
	}
}

// Run runs the check with aggregates of a type that the tables do not have yet.
func (c Check) Run(t T, e *engine.Engine, aggregateType string) {
	t.Helper()
	c.run(world{t, aggregateType, e})
}

type world struct {
	T
	aggregateType string
	*engine.Engine
}

func (w world) account(value string) aggregate.ID {
	return aggregate.ID{Type: w.aggregateType, Value: value}
}

// Commit returns a commit of n events.
func Commit(id aggregate.ID, expected uint64, n int) storage.Commit {
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
	id := w.account("ada/1 ü")
	first := w.write(Commit(id, 0, 3))
	w.write(Commit(id, 3, 2))

	records := w.read(id)
	require.Len(w, records, 5)
	assert.Equal(w, []uint64{1, 2, 3, 4, 5}, w.numbers(id))
	want := Commit(id, 0, 3).Events[1]
	assert.Equal(w, &journaltype.Record{
		Aggregate: id, Number: 2, EventID: want.ID, EventType: want.Type, Payload: want.Payload, Metadata: want.Metadata,
		OccurredAt: first.OccurredAt, WrittenAt: first.OccurredAt, CommitID: first.CommitID,
	}, records[1])
	version, err := w.Version(w.Context(), id)
	require.NoError(w, err)
	assert.EqualValues(w, 5, version)
}

func (w world) refusesAnotherVersion() {
	id := w.account("1")
	w.write(Commit(id, 0, 2))
	w.write(Commit(id, 2, 2))
	for _, expected := range []uint64{0, 1, 2, 3, 5} {
		c := Commit(id, expected, 1)
		c.Proven = expected == 2 // it was a version once
		_, err := w.Append(w.Context(), c)
		require.ErrorIs(w, err, journaltype.ErrConflict, expected)
	}
	assert.Equal(w, []uint64{1, 2, 3, 4}, w.numbers(id))
}

func (w world) executesACommandOnce() {
	id := w.account("1")
	for n, events := range []int{2, 0} {
		c := Commit(id, 2*uint64(n), events)
		c.CommandID = fmt.Sprint("command-", n)
		receipt := w.write(c)

		c = Commit(id, 2, 1)
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
	id := w.account("1")
	w.write(w.withSnapshot(Commit(id, 0, 4)))
	w.write(Commit(id, 4, 2))

	from, later := w.loaded(id)
	assert.EqualValues(w, 4, from)
	assert.Equal(w, []uint64{5, 6}, later)
}

func (w world) truncates() {
	id := w.account("1")
	w.write(w.withSnapshot(Commit(id, 0, 4)))
	require.ErrorIs(w, w.Truncate(w.Context(), id, 6, journaltype.RemoveOptions{}), journaltype.ErrNotCovered)
	require.NoError(w, w.Truncate(w.Context(), id, 5, journaltype.RemoveOptions{}))
	w.write(Commit(id, 4, 1))

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
	id := w.account("1")
	w.write(Commit(id, 0, 2))
	require.ErrorIs(w, w.Delete(w.Context(), id, 1, journaltype.RemoveOptions{}), journaltype.ErrConflict)
	require.NoError(w, w.Delete(w.Context(), id, 2, journaltype.RemoveOptions{}))
	require.NoError(w, w.Delete(w.Context(), id, 2, journaltype.RemoveOptions{}), "again")

	var deleted *journaltype.DeletedError
	_, err := w.Append(w.Context(), Commit(id, 2, 1))
	require.ErrorAs(w, err, &deleted)
	assert.EqualValues(w, 2, deleted.Version)
	_, err = w.Version(w.Context(), id)
	require.ErrorAs(w, err, &deleted)
}

func (w world) commitsTogether() {
	a, b, c := w.account("a"), w.account("b"), w.account("c")
	w.write(Commit(a, 0, 1))
	joint := func(expected uint64) storage.Joint {
		return storage.Joint{Parts: []storage.Commit{Commit(a, expected, 1), Commit(b, 0, 2), Commit(c, 0, 1)}}
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
		id := w.account(fmt.Sprint(n))
		w.write(Commit(id, 0, n%3+1))
		w.write(Commit(id, uint64(n%3+1), 2))
		want[id] = uint64(n%3 + 3)
	}
	w.write(Commit(aggregate.ID{Type: w.aggregateType + "-other", Value: "1"}, 0, 1))

	heads, tail := w.listed()
	// Indexes are eventually consistent. The database of a test needs no second attempt.
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && w.Context().Err() == nil; heads, tail = w.listed() {
		if maps.Equal(want, heads) && maps.Equal(want, tail) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	assert.Equal(w, want, heads)
	assert.Equal(w, want, tail)
}

// listed returns the versions that the heads show, and the number of events in the tail.
func (w world) listed() (heads, tail map[aggregate.ID]uint64) {
	w.Helper()
	heads, tail = map[aggregate.ID]uint64{}, map[aggregate.ID]uint64{}
	for shard := range w.Config.Shards {
		query := storage.HeadsOfShard{AggregateType: w.aggregateType, Shard: shard, Consistent: true}
		for page, err := range w.ShardHeads(w.Context(), query, func(c *journaltype.CorruptItemError) { assert.NoError(w, c) }) {
			require.NoError(w, err)
			for _, h := range page {
				assert.NotContains(w, heads, h.Aggregate)
				heads[h.Aggregate] = h.Version
			}
		}
		for q, more := (storage.TailQuery{AggregateType: w.aggregateType, Shard: shard, Limit: 2}), true; more; {
			page, err := w.TailShard(w.Context(), q)
			require.NoError(w, err)
			assert.Empty(w, page.Corrupt)
			for _, r := range page.Records {
				tail[r.Aggregate]++
			}
			q.After, more = page.Next, page.More
		}
	}
	return heads, tail
}
