package sequence

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// The tests keep nothing with a stream.
type (
	none      struct{}
	stream    = Stream[none]
	sequencer = Sequencer[none]
)

func testSequencer() *sequencer {
	q := New[none](Limits{IdleStreams: 3, MaxUnstored: 100, MaxUnfinished: 3, Hints: rate.NewLimiter(rate.Inf, 0), Rare: func() bool { return false }}, &Budget{size: 12_000, lanes: 1}, &atomic.Uint64{}, time.Now, func(*stream, bool) {})
	return q
}

func testRecord(id string, number uint64, at int64) *journaltype.Record {
	return &journaltype.Record{
		Aggregate: aggregate.ID{Type: "account", Value: id}, Number: number, WrittenAt: time.UnixMilli(at), Payload: make([]byte, 100),
	}
}

// The flusher can delete the entry of a stream while the stream's worker has not ended. An event
// that is found at that moment must hold the cursor like any other.
func TestAStreamThatIsTakenOffTheListInTheMiddleOfAServingStillHoldsTheCursor(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.BehindAfter = time.Hour
	q.ObserveTail([]*journaltype.Record{testRecord("x", 1, 10)}, 0)
	st := q.streams["x"]
	q.Claimed(st, 0)
	q.SetListed(st, true)
	q.Ack(st, 1)
	st.Stored.Store(1)
	q.Clean(st, 1)
	require.Equal(t, []*stream{st}, q.Progress().Unlist)
	q.SetListed(st, false)

	q.ObserveTail([]*journaltype.Record{testRecord("x", 2, 50)}, 100)
	assert.EqualValues(t, 50, q.Progress().Next.At)
}

// A former owner may still delete the entry of an aggregate whose events it has handled, without
// knowing the later ones.
func TestAnInheritedEntryLeadsToNoLaterEvents(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	x := aggregate.ID{Type: "account", Value: "x"}
	q.Begin(Cursor{}, time.Now(), []storage.Behind{{Aggregate: x, Head: 2, Epoch: 1}})
	st := q.streams["x"]
	q.Claimed(st, 1)
	q.TookOver(st, 2)
	assert.Empty(t, q.Progress().List, "the entry leads to event 2")
	q.ObserveTail([]*journaltype.Record{testRecord("x", 3, 50)}, 100)
	assert.Equal(t, []*stream{st}, q.Progress().List)

	q.SetListed(st, true)
	q.ObserveTail([]*journaltype.Record{testRecord("x", 4, 70)}, 100)
	assert.Empty(t, q.Progress().List, "nobody else removes an entry of its own")
}

// The cursor may have passed events that the entry does not cover. The position does not show that
// they exist.
func TestAnInheritedEntryStaysUntilTheEndOfTheAggregateIsKnown(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	x := aggregate.ID{Type: "account", Value: "x"}
	q.Begin(Cursor{}, time.Now(), []storage.Behind{{Aggregate: x, Head: 1, Epoch: 1}})
	st := q.streams["x"]
	q.Claimed(st, 1)
	require.Empty(t, q.Progress().Unlist)
	q.TookOver(st, 2)
	assert.Equal(t, []*stream{st}, q.Progress().List)

	q.Ack(st, 2)
	st.Stored.Store(2)
	q.Clean(st, 2)
	assert.Equal(t, []*stream{st}, q.Progress().Unlist)
}

func TestAStreamThatFailsIsListedOnlyWhereTheCursorWouldPassIt(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.Enqueue([]*journaltype.Record{testRecord("x", 1, 50)}, true, 40)
	st := q.streams["x"]
	q.Claimed(st, 0)
	q.PutOff(st, false)
	assert.Empty(t, q.Progress().List)
	q.Enqueue(nil, true, 60)
	assert.Equal(t, []*stream{st}, q.Progress().List)
}

// A worker that has nothing more to do may end after the next one has begun.
func TestAStreamThatIsServedAgainIsStuckWhenItsHandlerTakesLong(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	now := time.Now()
	q.now = func() time.Time { return now }
	q.Enqueue([]*journaltype.Record{testRecord("x", 1, 10)}, true, 10)
	st := q.streams["x"]
	q.BeginServing(st)
	q.Claimed(st, 0)
	q.Ack(st, 1)
	_, _, to := q.Next(st)
	require.Zero(t, to)
	assert.False(t, st.stuck(now.Add(time.Hour), time.Minute), "nobody serves it")
	q.Enqueue([]*journaltype.Record{testRecord("x", 2, 20)}, true, 20)
	assert.False(t, st.stuck(now.Add(time.Hour), time.Minute), "it waits for a worker")
	q.BeginServing(st)
	assert.True(t, st.stuck(now.Add(time.Hour), time.Minute))
	q.PutOff(st, false)
	q.Resume(st)
	assert.True(t, st.stuck(now, time.Minute), "it failed")
}

// A former owner has handled more events than this one, which notices that when it stores its
// position.
func TestWhatAFormerOwnerHasHandledDoesNotComeAgain(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	var records []*journaltype.Record
	for n := range uint64(5) {
		records = append(records, testRecord("x", n+1, 10))
	}
	q.Enqueue(records, true, 10)
	st := q.streams["x"]
	q.Claimed(st, 0)
	r, _, _ := q.Next(st)
	require.EqualValues(t, 1, r.Number)
	q.Clean(st, 4) // while 1 is being handled
	q.Ack(st, 1)
	r, _, _ = q.Next(st)
	assert.EqualValues(t, 5, r.Number)
}

// An aggregate that only a reconciliation has found is found by the next one, if it was not handled
// before.
func TestAReconciliationIsNotDoneBeforeWhatItFoundIs(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	before, after := time.UnixMilli(1_000), time.UnixMilli(2_000)
	q.Begin(Cursor{At: 500, ReconciledAt: before}, before, nil)
	q.ObserveReconciled([]*journaltype.Record{testRecord("x", 1, 500)})
	q.SetReconciled(after, 0)
	assert.Equal(t, before, q.Progress().Next.ReconciledAt)
	st := q.streams["x"]
	q.Claimed(st, 0)
	q.Ack(st, 1)
	st.Stored.Store(1)
	q.Clean(st, 1)
	assert.Equal(t, after, q.Progress().Next.ReconciledAt)
}

// An unstored position is lost in a crash, and the next reconciliation is an hour away.
func TestAReconciliationIsNotDoneBeforePositionsOfWhatItFoundAreStored(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	before, after := time.UnixMilli(1_000), time.UnixMilli(2_000)
	q.Begin(Cursor{At: 500, ReconciledAt: before}, before, nil)
	q.ObserveReconciled([]*journaltype.Record{testRecord("x", 1, 500)})
	q.SetReconciled(after, 0)
	st := q.streams["x"]
	q.Claimed(st, 0)
	q.Ack(st, 1)
	assert.Equal(t, before, q.Progress().Next.ReconciledAt)
}

// A commit of this process with a wrong date leaves nothing by which a restart finds it.
func TestAReconciliationIsNotDoneBeforeWhatOnlyAWakeUpHasShownIs(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	before := time.UnixMilli(1_000)
	q.Begin(Cursor{At: 500, ReconciledAt: before}, before, nil)
	q.Enqueue(nil, true, 500)
	q.Wake(aggregate.ID{Type: "account", Value: "x"}, 1)
	q.ObserveReconciled([]*journaltype.Record{testRecord("x", 1, 500)})
	q.SetReconciled(time.UnixMilli(2_000), 0)
	assert.Equal(t, before, q.Progress().Next.ReconciledAt)
}

// The last reconciliation ended after the tail had shown an event that still holds the cursor.
func TestAReconciliationDoesNotLetTheCursorPassWhatTheTailHasShown(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	before := time.UnixMilli(1_000)
	q.Begin(Cursor{At: 500, ReconciledAt: before}, before, nil)
	q.Enqueue([]*journaltype.Record{testRecord("x", 1, 600)}, true, 600)
	q.Enqueue(nil, true, 700)
	q.ObserveReconciled([]*journaltype.Record{testRecord("x", 2, 700)})
	q.Enqueue(nil, true, 800)
	assert.Equal(t, Cursor{600, before}, q.Progress().Next)
}

// The last finished reconciliation may be one from before the event, and the tail leads to the
// event as well.
func TestWhatTheTailShowsAfterAReconciliationHoldsTheCursor(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.BehindAfter = time.Hour
	q.Begin(Cursor{At: 5, ReconciledAt: time.UnixMilli(7)}, time.UnixMilli(7), nil)
	q.ObserveReconciled([]*journaltype.Record{testRecord("x", 3, 5)})
	q.SetReconciled(time.UnixMilli(60), 0)
	q.ObserveTail([]*journaltype.Record{testRecord("x", 3, 40)}, 80)
	assert.EqualValues(t, 40, q.Progress().Next.At)
	assert.EqualValues(t, 60, q.Progress().Next.ReconciledAt.UnixMilli())
}

// A cursor that was stored, or a reconciliation that began, before the rewind does not count.
func TestACursorThatIsRewoundIsStoredAndReconciledAgain(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.Begin(Cursor{500, time.UnixMilli(1_000)}, time.UnixMilli(1_000), nil)
	q.Enqueue(nil, true, 9_000_000)
	p := q.Progress()
	_, rewinds, _ := q.LastReconciliation()
	q.Rewind(800)
	q.SaveCursor(p)
	q.SetReconciled(time.UnixMilli(2_000), rewinds)
	assert.EqualValues(t, 800, q.Progress().Next.At)
	reconciled, _, _ := q.LastReconciliation()
	assert.True(t, reconciled.IsZero(), "a reconciliation is due")

	q.SetReconciled(time.UnixMilli(3_000), rewinds+1)
	q.ObserveReconciled([]*journaltype.Record{testRecord("x", 3, 800)})
	assert.True(t, q.Progress().Next.ReconciledAt.IsZero(), "the earlier reconciliation does not count while this one is not finished")
}

func TestWhatWasForgottenIsKnownToHaveBeen(t *testing.T) {
	t.Parallel()
	const aggregates = 50_000
	f := &forgotten{}
	id := func(n int) aggregate.ID { return aggregate.ID{Type: "account", Value: fmt.Sprint(n)} }
	for n := range aggregates {
		f.add(id(n))
	}
	wrong := 0
	for n := range aggregates {
		require.True(t, f.has(id(n)))
		if f.has(id(aggregates + n)) {
			wrong++
		}
	}
	assert.Less(t, wrong, aggregates/50)
	assert.False(t, (*forgotten)(nil).has(id(1)))
}

func TestForgedHintsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	var served []*stream
	q.ready = func(st *stream, _ bool) { served = append(served, st) }
	q.Rare = func() bool { return true }
	q.Enqueue(nil, true, 0)
	id := func(n int) aggregate.ID { return aggregate.ID{Type: "account", Value: fmt.Sprint(n)} }
	for n := range 1_000 {
		require.True(t, q.Hint(id(n), 7))
		for _, st := range served { // as a worker does that finds no events
			q.BeginServing(st)
			q.Claimed(st, 0)
			q.Followed(st, nil, 0, q.TakeHint(st), false)
			r, _, to := q.Next(st)
			require.Nil(t, r)
			require.Zero(t, to)
		}
		served = nil
		q.Enqueue(nil, true, 0)
	}
	assert.LessOrEqual(t, len(q.streams), 3)
	for n := range 1_000 {
		require.False(t, q.HasForgotten(id(n)), n)
	}
}

func TestAReconciliationWaitsWhileManyStreamsHaveEventsLeft(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	id := func(value string) aggregate.ID { return aggregate.ID{Type: "account", Value: value} }
	for _, value := range []string{"a", "b", "c"} {
		assert.True(t, q.HasRoom())
		q.ObserveReconciled([]*journaltype.Record{{Aggregate: id(value), Number: 1}})
	}
	assert.False(t, q.HasRoom())

	q.Park(q.streams["a"])
	assert.True(t, q.HasRoom(), "parked ones wait for an operator")
}

// Parked streams wait for an operator, and may be many.
func TestAShardWithParkedStreamsReadsOnWhileOthersFail(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.Memory = NewMemory(1 << 20)
	q.Memory.shards.Store(2)
	q.Memory.fails(1 << 20 / streamBytes / failingPart) // in the other shard
	var inherited []storage.Behind
	for n := range 200 {
		inherited = append(inherited, storage.Behind{
			Aggregate: testRecord(fmt.Sprint("inherited", n), 1, 10).Aggregate, Head: 1, Parked: &storage.Failure{Number: 1},
		})
	}
	q.Begin(Cursor{}, time.Now(), inherited)
	for n := range 200 {
		id := fmt.Sprint(n)
		q.Enqueue([]*journaltype.Record{testRecord(id, 1, 10)}, true, 10)
		q.Claimed(q.streams[id], 0)
		q.PutOff(q.streams[id], false)
		q.Park(q.streams[id])
	}
	assert.True(t, q.IsHealthy())

	positions := map[aggregate.ID]uint64{}
	for _, b := range inherited {
		positions[b.Aggregate] = 1
	}
	q.Verify(q.TakeUnverified(len(inherited)), positions)
	assert.False(t, q.IsHealthy(), "they continue, and may fail")
}

func TestAWakeUpAddsNoStreamWhileTheBufferIsFull(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.Enqueue(nil, true, 0)
	q.budget.take(q.budget.size)

	q.Wake(aggregate.ID{Type: "account", Value: "a"}, 1)
	assert.Empty(t, q.streams)

	q.budget.Release(1)
	q.Wake(aggregate.ID{Type: "account", Value: "a"}, 1)
	assert.Len(t, q.streams, 1)
}

// Streams that continue may make nothing dirty, for example if handlers have stored their
// positions.
func TestNoStreamWaitsForPositionsOnceAllAreStored(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.MaxUnstored = 1
	q.Enqueue([]*journaltype.Record{testRecord("x", 1, 10), testRecord("y", 1, 10), testRecord("z", 1, 10)}, true, 10)
	for _, st := range q.streams {
		q.Claimed(st, 0)
	}
	q.Ack(q.streams["x"], 1)
	var ready []*stream
	q.ready = func(st *stream, _ bool) { ready = append(ready, st) }
	require.False(t, q.Admit(q.streams["y"]))
	require.False(t, q.Admit(q.streams["z"]))
	q.streams["x"].Stored.Store(1)
	q.Clean(q.streams["x"], 1)
	assert.Equal(t, []*stream{q.streams["y"], q.streams["z"]}, ready)
}

// Between the decision to list a stream and the write, the stream may be finished and forgotten.
// The entry would be deleted later as that of a finished stream, while another stream with its id
// relies on it.
func TestAStreamThatIsForgottenIsNotListed(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.IdleStreams = 0
	q.Enqueue([]*journaltype.Record{testRecord("x", 1, 50)}, true, 40)
	st := q.streams["x"]
	q.Claimed(st, 0)
	q.PutOff(st, false)
	q.Enqueue(nil, true, 60)
	require.Equal(t, []*stream{st}, q.Progress().List)

	st.Stored.Store(1) // by its handler
	q.Resume(st)
	q.Ack(st, 1)
	q.Next(st)
	q.Enqueue(nil, true, 60)
	require.Empty(t, q.streams)
	_, needed := q.BeginListing(st)
	assert.False(t, needed)
	assert.Empty(t, q.Progress().Unlist)
}

func TestAFailureIsForgottenWithItsEvent(t *testing.T) {
	t.Parallel()
	x := aggregate.ID{Type: "account", Value: "x"}
	failed := &storage.Failure{Number: 2, Reason: "broken"}
	for name, of := range map[string]struct {
		forget func(*sequencer, *stream)
		want   *storage.Failure
	}{
		"it is acked":              {func(q *sequencer, st *stream) { q.Ack(st, 2) }, nil},
		"only one before is acked": {func(q *sequencer, st *stream) { q.Ack(st, 1) }, failed},
		"it was removed":           {func(q *sequencer, st *stream) { q.Pass(st, 2) }, nil},
		"a former owner stored it": {func(q *sequencer, st *stream) { q.Clean(st, 2) }, nil},
		"it is parked":             {func(q *sequencer, st *stream) { q.Park(st) }, nil},
		"the next one fails": {func(q *sequencer, st *stream) {
			q.Ack(st, 2)
			q.NoteFailure(st, storage.Failure{Number: 3})
		}, &storage.Failure{Number: 3}},
	} {
		for inherited, position := range map[bool]uint64{true: 1, false: 0} {
			q := testSequencer()
			entry := storage.Behind{Aggregate: x, Head: 4}
			if inherited {
				entry.Failure = failed
			}
			q.Begin(Cursor{}, time.Now(), []storage.Behind{entry})
			st := q.streams["x"]
			q.Claimed(st, position)
			if !inherited {
				q.NoteFailure(st, *failed)
			}
			require.Equal(t, failed, st.failure)
			of.forget(q, st)
			assert.Equal(t, of.want, st.failure, "%s, inherited: %t", name, inherited)
		}
	}
	q := testSequencer()
	q.Begin(Cursor{}, time.Now(), []storage.Behind{{Aggregate: x, Head: 4, Failure: failed}})
	q.Claimed(q.streams["x"], 2)
	assert.Nil(t, q.streams["x"].failure, "the position is beyond it")
}

// The event because of which the stream was parked may have been handled after all: by a late
// transaction, or by the former owner, which stored its position late.
func TestEachParkedStreamIsComparedWithItsPosition(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	x := aggregate.ID{Type: "account", Value: "x"}
	q.Begin(Cursor{}, time.Now(), []storage.Behind{{Aggregate: x, Head: 5, Epoch: 1, Parked: &storage.Failure{Number: 3}}})
	some := q.TakeUnverified(10)
	require.Len(t, some, 1)
	q.Verify(some, map[aggregate.ID]uint64{x: 3})
	assert.Equal(t, active, q.streams["x"].state)
}

// The streams that come first may be the same in each visit.
func TestAnyPacedStreamMayComeFirst(t *testing.T) {
	t.Parallel()
	first := map[string]bool{}
	for range 1000 {
		q := testSequencer()
		q.Began, q.PacedAfter = time.UnixMilli(1000), 3
		var behind []storage.Behind
		for n := range 50 {
			behind = append(behind, storage.Behind{
				Aggregate: aggregate.ID{Type: "account", Value: strconv.Itoa(n)}, Head: 1, Failure: &storage.Failure{Number: 1, Attempts: 4, Due: time.UnixMilli(int64(n))},
			})
		}
		q.Begin(Cursor{}, time.Time{}, behind)
		paced := q.TakePaced()
		require.Len(t, paced, 50)
		for n := range 7 {
			require.Equal(t, strconv.Itoa(n), paced[n].ID.Value, "the one that has waited longest")
		}
		first[paced[7].ID.Value] = true
	}
	assert.Len(t, first, 43)
}

func TestEventsThatAreHandledOrInMemoryAreNotNeeded(t *testing.T) {
	t.Parallel()
	q, x := testSequencer(), testRecord("x", 1, 10).Aggregate
	require.True(t, q.Needs(x, 1, 1), "nothing is known")
	q.Enqueue(nil, true, 10)
	q.Wake(x, 4)
	st := q.streams["x"]
	require.True(t, q.Needs(x, 1, 4), "no worker has read them")
	q.Claimed(st, 1)
	q.Fill(st, []*journaltype.Record{testRecord("x", 2, 20), testRecord("x", 3, 30)})
	assert.False(t, q.Needs(x, 1, 1), "it is handled")
	assert.False(t, q.Needs(x, 1, 3), "the rest is in memory")
	assert.False(t, q.Needs(x, 3, 3))
	assert.True(t, q.Needs(x, 1, 4))
	assert.True(t, q.Needs(x, 4, 4))
	q.Next(st)
	assert.False(t, q.Needs(x, 2, 2), "a worker has it")

	q.PutOff(st, false)
	assert.False(t, q.Needs(x, 2, 4), "it takes none while it waits")
	q.Resume(st)
	q.Ack(st, 2)
	assert.True(t, q.Needs(x, 3, 3), "it has dropped what it had")
	q.Ack(st, 4)
	assert.False(t, q.Needs(x, 2, 4))
	assert.True(t, q.Needs(x, 5, 5))
}

func TestAnEventThatWasNotReadIsReadByKey(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.Enqueue([]*journaltype.Record{testRecord("x", 2, 20)}, true, 10, testRecord("x", 1, 10))
	st := q.streams["x"]
	q.Claimed(st, 0)

	r, from, to := q.Next(st)

	assert.Nil(t, r)
	assert.EqualValues(t, 1, from)
	assert.EqualValues(t, 1, to)
	assert.EqualValues(t, 20, st.shownAt)
}
