package subscriber

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

func testSequencer() *sequencer {
	q := newSequencer(limits{idleStreams: 3, maxUnstored: 100, maxUnfinished: 3}, &budget{size: 12_000, lanes: 1}, &atomic.Uint64{}, time.Now, func(*stream, bool) {})
	return q
}

func testRecord(id string, number uint64, at int64) *journal.Record {
	return &journal.Record{
		Aggregate: aggregate.ID{Type: "account", Value: id}, Number: number, WrittenAt: time.UnixMilli(at), Payload: make([]byte, 100),
	}
}

// The flusher can delete the entry of a stream while the stream's worker has not ended. An event
// that is found at that moment must hold the cursor like any other.
func TestAStreamThatIsTakenOffTheListInTheMiddleOfAServingStillHoldsTheCursor(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.behindAfter = time.Hour
	q.observe([]*journal.Record{testRecord("x", 1, 10)}, byTrailing, 0)
	st := q.streams["x"]
	q.claimed(st, 0)
	q.setListed(st, true)
	q.ack(st, 1)
	st.stored.Store(1)
	q.clean(st, 1)
	require.Equal(t, []*stream{st}, q.progress().unlist)
	q.setListed(st, false)

	q.observe([]*journal.Record{testRecord("x", 2, 50)}, byTrailing, 100)
	assert.EqualValues(t, 50, q.progress().next.at)
}

// A former owner may still delete the entry of an aggregate whose events it has handled, without
// knowing the later ones.
func TestAnInheritedEntryLeadsToNoLaterEvents(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	x := aggregate.ID{Type: "account", Value: "x"}
	q.begin(savedCursor{}, time.Now(), []checkpoint.Behind{{Aggregate: x, Head: 2, Epoch: 1}})
	st := q.streams["x"]
	q.claimed(st, 1)
	q.tookOver(st, 2)
	assert.Empty(t, q.progress().list, "the entry leads to event 2")
	q.observe([]*journal.Record{testRecord("x", 3, 50)}, byTail, 100)
	assert.Equal(t, []*stream{st}, q.progress().list)

	q.setListed(st, true)
	q.observe([]*journal.Record{testRecord("x", 4, 70)}, byTail, 100)
	assert.Empty(t, q.progress().list, "nobody else removes an entry of its own")
}

// The cursor may have passed events that the entry does not cover. The position does not show that
// they exist.
func TestAnInheritedEntryStaysUntilTheEndOfTheAggregateIsKnown(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	x := aggregate.ID{Type: "account", Value: "x"}
	q.begin(savedCursor{}, time.Now(), []checkpoint.Behind{{Aggregate: x, Head: 1, Epoch: 1}})
	st := q.streams["x"]
	q.claimed(st, 1)
	require.Empty(t, q.progress().unlist)
	q.tookOver(st, 2)
	assert.Equal(t, []*stream{st}, q.progress().list)

	q.ack(st, 2)
	st.stored.Store(2)
	q.clean(st, 2)
	assert.Equal(t, []*stream{st}, q.progress().unlist)
}

func TestAStreamThatFailsIsListedOnlyWhereTheCursorWouldPassIt(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.enqueue([]*journal.Record{testRecord("x", 1, 50)}, true, 40)
	st := q.streams["x"]
	q.claimed(st, 0)
	q.putOff(st)
	assert.Empty(t, q.progress().list)
	q.enqueue(nil, true, 60)
	assert.Equal(t, []*stream{st}, q.progress().list)
}

// A worker that has nothing more to do may end after the next one has begun.
func TestAStreamThatIsServedAgainIsStuckWhenItsHandlerTakesLong(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	now := time.Now()
	q.now = func() time.Time { return now }
	q.enqueue([]*journal.Record{testRecord("x", 1, 10)}, true, 10)
	st := q.streams["x"]
	q.beginServing(st)
	q.claimed(st, 0)
	q.ack(st, 1)
	_, _, to := q.next(st)
	require.Zero(t, to)
	assert.False(t, st.stuck(now.Add(time.Hour), time.Minute), "nobody serves it")
	q.enqueue([]*journal.Record{testRecord("x", 2, 20)}, true, 20)
	assert.False(t, st.stuck(now.Add(time.Hour), time.Minute), "it waits for a worker")
	q.beginServing(st)
	assert.True(t, st.stuck(now.Add(time.Hour), time.Minute))
	q.putOff(st)
	q.resume(st)
	assert.True(t, st.stuck(now, time.Minute), "it failed")
}

// A former owner has handled more events than this one, which notices that when it stores its
// position.
func TestWhatAFormerOwnerHasHandledDoesNotComeAgain(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	var records []*journal.Record
	for n := range uint64(5) {
		records = append(records, testRecord("x", n+1, 10))
	}
	q.enqueue(records, true, 10)
	st := q.streams["x"]
	q.claimed(st, 0)
	r, _, _ := q.next(st)
	require.EqualValues(t, 1, r.Number)
	q.clean(st, 4) // while 1 is being handled
	q.ack(st, 1)
	r, _, _ = q.next(st)
	assert.EqualValues(t, 5, r.Number)
}

// An aggregate that only a reconciliation has found is found by the next one, if it was not handled
// before.
func TestAReconciliationIsNotDoneBeforeWhatItFoundIs(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	before, after := time.UnixMilli(1_000), time.UnixMilli(2_000)
	q.begin(savedCursor{at: 500, reconciledAt: before}, before, nil)
	q.observe([]*journal.Record{testRecord("x", 1, 500)}, byReconciliation, 0)
	q.setReconciled(after, 0)
	assert.Equal(t, before, q.progress().next.reconciledAt)
	st := q.streams["x"]
	q.claimed(st, 0)
	q.ack(st, 1)
	st.stored.Store(1)
	q.clean(st, 1)
	assert.Equal(t, after, q.progress().next.reconciledAt)
}

// An unstored position is lost in a crash, and the next reconciliation is an hour away.
func TestAReconciliationIsNotDoneBeforePositionsOfWhatItFoundAreStored(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	before, after := time.UnixMilli(1_000), time.UnixMilli(2_000)
	q.begin(savedCursor{at: 500, reconciledAt: before}, before, nil)
	q.observe([]*journal.Record{testRecord("x", 1, 500)}, byReconciliation, 0)
	q.setReconciled(after, 0)
	st := q.streams["x"]
	q.claimed(st, 0)
	q.ack(st, 1)
	assert.Equal(t, before, q.progress().next.reconciledAt)
}

// A commit of this process with a wrong date leaves nothing by which a restart finds it.
func TestAReconciliationIsNotDoneBeforeWhatOnlyAWakeUpHasShownIs(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	before := time.UnixMilli(1_000)
	q.begin(savedCursor{at: 500, reconciledAt: before}, before, nil)
	q.enqueue(nil, true, 500)
	q.wake(aggregate.ID{Type: "account", Value: "x"}, 1)
	q.observe([]*journal.Record{testRecord("x", 1, 500)}, byReconciliation, 0)
	q.setReconciled(time.UnixMilli(2_000), 0)
	assert.Equal(t, before, q.progress().next.reconciledAt)
}

// The last reconciliation ended after the tail had shown an event that still holds the cursor.
func TestAReconciliationDoesNotLetTheCursorPassWhatTheTailHasShown(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	before := time.UnixMilli(1_000)
	q.begin(savedCursor{at: 500, reconciledAt: before}, before, nil)
	q.enqueue([]*journal.Record{testRecord("x", 1, 600)}, true, 600)
	q.enqueue(nil, true, 700)
	q.observe([]*journal.Record{testRecord("x", 2, 700)}, byReconciliation, 0)
	q.enqueue(nil, true, 800)
	assert.Equal(t, savedCursor{600, before}, q.progress().next)
}

// The last finished reconciliation may be one from before the event, and the tail leads to the
// event as well.
func TestWhatTheTailShowsAfterAReconciliationHoldsTheCursor(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.behindAfter = time.Hour
	q.begin(savedCursor{at: 5, reconciledAt: time.UnixMilli(7)}, time.UnixMilli(7), nil)
	q.observe([]*journal.Record{testRecord("x", 3, 5)}, byReconciliation, 0)
	q.setReconciled(time.UnixMilli(60), 0)
	q.observe([]*journal.Record{testRecord("x", 3, 40)}, byTrailing, 80)
	assert.EqualValues(t, 40, q.progress().next.at)
	assert.EqualValues(t, 60, q.progress().next.reconciledAt.UnixMilli())
}

// A cursor that was stored, or a reconciliation that began, before the rewind does not count.
func TestACursorThatIsRewoundIsStoredAndReconciledAgain(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.begin(savedCursor{500, time.UnixMilli(1_000)}, time.UnixMilli(1_000), nil)
	q.enqueue(nil, true, 9_000_000)
	p := q.progress()
	_, rewinds, _ := q.lastReconciliation()
	q.rewind(800)
	q.saveCursor(p)
	q.setReconciled(time.UnixMilli(2_000), rewinds)
	assert.EqualValues(t, 800, q.progress().next.at)
	reconciled, _, _ := q.lastReconciliation()
	assert.True(t, reconciled.IsZero(), "a reconciliation is due")

	q.setReconciled(time.UnixMilli(3_000), rewinds+1)
	q.observe([]*journal.Record{testRecord("x", 3, 800)}, byReconciliation, 0)
	assert.True(t, q.progress().next.reconciledAt.IsZero(), "the earlier reconciliation does not count while this one is not finished")
}

func TestWhatWasForgottenIsKnownToHaveBeen(t *testing.T) {
	t.Parallel()
	const aggregates = 50_000
	f := newForgotten()
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

func TestAReconciliationWaitsWhileManyStreamsHaveEventsLeft(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	id := func(value string) aggregate.ID { return aggregate.ID{Type: "account", Value: value} }
	for _, value := range []string{"a", "b", "c"} {
		assert.True(t, q.hasRoom())
		q.observe([]*journal.Record{{Aggregate: id(value), Number: 1}}, byReconciliation, 0)
	}
	assert.False(t, q.hasRoom())

	q.park(q.streams["a"])
	assert.True(t, q.hasRoom(), "parked ones wait for an operator")
}

// Parked streams wait for an operator, and may be many.
func TestAShardWithParkedStreamsReadsOnWhileOthersFail(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.memory = newMemory(1 << 20)
	q.memory.shards.Store(2)
	q.memory.fails(1 << 20 / streamBytes / failingPart) // in the other shard
	var inherited []checkpoint.Behind
	for n := range 200 {
		inherited = append(inherited, checkpoint.Behind{
			Aggregate: testRecord(fmt.Sprint("inherited", n), 1, 10).Aggregate, Head: 1, Parked: &checkpoint.Failure{Number: 1},
		})
	}
	q.begin(savedCursor{}, time.Now(), inherited)
	for n := range 200 {
		id := fmt.Sprint(n)
		q.enqueue([]*journal.Record{testRecord(id, 1, 10)}, true, 10)
		q.claimed(q.streams[id], 0)
		q.putOff(q.streams[id])
		q.park(q.streams[id])
	}
	assert.True(t, q.isHealthy())

	positions := map[aggregate.ID]uint64{}
	for _, b := range inherited {
		positions[b.Aggregate] = 1
	}
	q.verify(q.takeUnverified(len(inherited)), positions)
	assert.False(t, q.isHealthy(), "they continue, and may fail")
}

func TestAWakeUpAddsNoStreamWhileTheBufferIsFull(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.enqueue(nil, true, 0)
	q.budget.take(q.budget.size)

	q.wake(aggregate.ID{Type: "account", Value: "a"}, 1)
	assert.Empty(t, q.streams)

	q.budget.release(1)
	q.wake(aggregate.ID{Type: "account", Value: "a"}, 1)
	assert.Len(t, q.streams, 1)
}

// Streams that continue may make nothing dirty, for example if handlers have stored their
// positions.
func TestNoStreamWaitsForPositionsOnceAllAreStored(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.maxUnstored = 1
	q.enqueue([]*journal.Record{testRecord("x", 1, 10), testRecord("y", 1, 10), testRecord("z", 1, 10)}, true, 10)
	for _, st := range q.streams {
		q.claimed(st, 0)
	}
	q.ack(q.streams["x"], 1)
	var ready []*stream
	q.ready = func(st *stream, _ bool) { ready = append(ready, st) }
	require.False(t, q.admit(q.streams["y"]))
	require.False(t, q.admit(q.streams["z"]))
	q.streams["x"].stored.Store(1)
	q.clean(q.streams["x"], 1)
	assert.Equal(t, []*stream{q.streams["y"], q.streams["z"]}, ready)
}

// Between the decision to list a stream and the write, the stream may be finished and forgotten.
// The entry would be deleted later as that of a finished stream, while another stream with its id
// relies on it.
func TestAStreamThatIsForgottenIsNotListed(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	q.idleStreams = 0
	q.enqueue([]*journal.Record{testRecord("x", 1, 50)}, true, 40)
	st := q.streams["x"]
	q.claimed(st, 0)
	q.putOff(st)
	q.enqueue(nil, true, 60)
	require.Equal(t, []*stream{st}, q.progress().list)

	st.stored.Store(1) // by its handler
	q.resume(st)
	q.ack(st, 1)
	q.next(st)
	q.enqueue(nil, true, 60)
	require.Empty(t, q.streams)
	_, needed := q.beginListing(st)
	assert.False(t, needed)
	assert.Empty(t, q.progress().unlist)
}

func TestAFailureIsForgottenWithItsEvent(t *testing.T) {
	t.Parallel()
	x := aggregate.ID{Type: "account", Value: "x"}
	failed := &checkpoint.Failure{Number: 2, Reason: "broken"}
	for name, of := range map[string]struct {
		forget func(*sequencer, *stream)
		want   *checkpoint.Failure
	}{
		"it is acked":              {func(q *sequencer, st *stream) { q.ack(st, 2) }, nil},
		"only one before is acked": {func(q *sequencer, st *stream) { q.ack(st, 1) }, failed},
		"it was removed":           {func(q *sequencer, st *stream) { q.pass(st, 2) }, nil},
		"a former owner stored it": {func(q *sequencer, st *stream) { q.clean(st, 2) }, nil},
		"it is parked":             {func(q *sequencer, st *stream) { q.park(st) }, nil},
		"the next one fails": {func(q *sequencer, st *stream) {
			q.ack(st, 2)
			q.noteFailure(st, checkpoint.Failure{Number: 3})
		}, &checkpoint.Failure{Number: 3}},
	} {
		for inherited, position := range map[bool]uint64{true: 1, false: 0} {
			q := testSequencer()
			entry := checkpoint.Behind{Aggregate: x, Head: 4}
			if inherited {
				entry.Failure = failed
			}
			q.begin(savedCursor{}, time.Now(), []checkpoint.Behind{entry})
			st := q.streams["x"]
			q.claimed(st, position)
			if !inherited {
				q.noteFailure(st, *failed)
			}
			require.Equal(t, failed, st.failure)
			of.forget(q, st)
			assert.Equal(t, of.want, st.failure, "%s, inherited: %t", name, inherited)
		}
	}
	q := testSequencer()
	q.begin(savedCursor{}, time.Now(), []checkpoint.Behind{{Aggregate: x, Head: 4, Failure: failed}})
	q.claimed(q.streams["x"], 2)
	assert.Nil(t, q.streams["x"].failure, "the position is beyond it")
}

// The event because of which the stream was parked may have been handled after all: by a late
// transaction, or by the former owner, which stored its position late.
func TestEachParkedStreamIsComparedWithItsPosition(t *testing.T) {
	t.Parallel()
	q := testSequencer()
	x := aggregate.ID{Type: "account", Value: "x"}
	q.begin(savedCursor{}, time.Now(), []checkpoint.Behind{{Aggregate: x, Head: 5, Epoch: 1, Parked: &checkpoint.Failure{Number: 3}}})
	some := q.takeUnverified(10)
	require.Len(t, some, 1)
	q.verify(some, map[aggregate.ID]uint64{x: 3})
	assert.Equal(t, active, q.streams["x"].state)
}
