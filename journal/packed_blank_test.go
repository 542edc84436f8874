package journal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// removals remove the events of a packed stream up to a number.
var removals = map[string]func(ctx context.Context, j *engine.Engine, to uint64) error{
	"trim": func(ctx context.Context, j *engine.Engine, to uint64) error { return j.Trim(ctx, trimmed, to+1) },
	"truncate": func(ctx context.Context, j *engine.Engine, to uint64) error {
		return j.Truncate(ctx, trimmed, to+1, journal.RemoveOptions{})
	},
	"delete": func(ctx context.Context, j *engine.Engine, to uint64) error {
		return j.Delete(ctx, trimmed, to, journal.RemoveOptions{})
	},
}

// blanked writes n commits and removes their events.
func (s store) blanked(t *testing.T, name string, n int) {
	t.Helper()
	s.append(t, name, 1, n)
	if name == "delete" {
		name = "truncate"
	}
	require.NoError(t, removals[name](t.Context(), s.Engine, uint64(n)))
}

// append writes n commits, the last one with a snapshot unless they are for a trim.
func (s store) append(t *testing.T, name string, first, n int) {
	t.Helper()
	for i := range n {
		c := storage.Commit{Aggregate: trimmed, Expected: uint64(first + i - 1), Proven: true, Events: events(first+i, 1)}
		if i == n-1 && name != "trim" {
			c.Snapshot = stateAt(uint64(first + i))
		}
		mustAppend(t, s, c)
	}
}

func TestPackedARemovalDoesNotReadWhatEarlierOnesRemoved(t *testing.T) {
	t.Parallel()
	long := 2000
	if testdb.Race {
		long = 400
	}
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cost := map[int][4]float64{}
			for _, before := range []int{100, long} {
				s, db := inMemory(t, packed)
				s.blanked(t, name, before)
				s.append(t, name, before+1, 10)
				recording := db.Record()
				require.NoError(t, remove(t.Context(), s.Engine, uint64(before+10)))
				read, write := recording.Units()
				recording.Reset()
				require.NoError(t, remove(t.Context(), s.Engine, uint64(before+10)), "what is done already")
				readAgain, writeAgain := recording.Units()
				cost[before] = [4]float64{read, write, readAgain, writeAgain}
				require.Empty(t, s.numbers(t, trimmed))
			}
			assert.Equal(t, cost[100], cost[long])
			assert.LessOrEqual(t, cost[long][0], 9.0, "units of reading")
			assert.LessOrEqual(t, cost[long][1], 36.0, "units of writing")
			assert.LessOrEqual(t, cost[long][2], 6.0, "units of reading if nothing is left")
			if name != "delete" { // it marks the snapshot as deleted
				assert.Zero(t, cost[long][3], "units of writing if nothing is left")
			}
		})
	}
}

func TestPackedARemovalIsCompletedAfterAnInterruptionAtAnyRequest(t *testing.T) {
	t.Parallel()
	for name, remove := range removals {
		for further, next := range map[string]int{"the same again": 0, "one that goes further": 5} {
			if name == "delete" && next > 0 {
				continue
			}
			t.Run(name+" "+further, func(t *testing.T) {
				t.Parallel()
				for n, done := 0, false; !done; n++ {
					require.Less(t, n, 100)
					s, db := inMemory(t, packed)
					s.blanked(t, name, 10)
					s.append(t, name, 11, 10)
					db.Inject(dynamotest.SmallPages(4))
					once := s.through(t, db.Client(testdb.Once))
					// All requests fail from the n-th on: several are under way at the same time.
					injection := db.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException", Message: "says the test"}), dynamotest.After(n))
					err := remove(t.Context(), once, 20)
					done = injection.Fired() == 0
					require.Equal(t, done, err == nil, "request %d: %v", n, err)
					injection.Remove()
					if next > 0 {
						s.append(t, name, 21, next)
					}

					require.NoError(t, remove(t.Context(), s.Engine, uint64(20+next)), "request %d", n)

					require.Empty(t, s.numbers(t, trimmed), "request %d", n)
					recording := db.Record()
					require.NoError(t, remove(t.Context(), s.Engine, uint64(20+next)), "request %d", n)
					require.Empty(t, recording.Calls("PutItem"), "request %d: nothing is left to do", n)
				}
			})
		}
	}
}

func TestPackedARemovalInsideACommitIsReadAgainFromThere(t *testing.T) {
	t.Parallel()
	s, _ := inMemory(t, packed)
	s.write(t, trimmed, 1, 2)
	s.write(t, trimmed, 3, 4)
	mustAppend(t, s, storage.Commit{Aggregate: trimmed, Expected: 6, Events: events(7, 1), Snapshot: stateAt(7)})
	require.NoError(t, s.Truncate(t.Context(), trimmed, 5, journal.RemoveOptions{}))
	require.Equal(t, numbersFrom(3, 7), s.numbers(t, trimmed))

	require.NoError(t, s.Truncate(t.Context(), trimmed, 8, journal.RemoveOptions{}))

	assert.Empty(t, s.numbers(t, trimmed))
}

func TestPackedARemovalOfAnEarlierReleaseIsContinued(t *testing.T) {
	t.Parallel()
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := inMemory(t, packed)
			s.blanked(t, name, 10)
			s.append(t, name, 11, 5)
			// It has not recorded how far it had come.
			s.change(t, s.Config().Tables.Journal, s.keyOf(trimmed, 1), item{"m": nil})

			require.NoError(t, remove(t.Context(), s.Engine, 15))

			assert.Empty(t, s.numbers(t, trimmed))
			assert.Equal(t, number(16), s.get(t, s.Config().Tables.Journal, s.keyOf(trimmed, 1))["m"])
		})
	}
}

func TestPackedARemovalThatMissesAnItemDoesNotRecordItAsRemoved(t *testing.T) {
	inFakeTime(t, map[string]journal.Config{"packed": packed}, func(t *testing.T, s store) {
		s.append(t, "truncate", 1, 10)
		proxy := dynamotest.NewProxy(t, s.client)
		hidden := proxy.Inject(dynamotest.Hide(func(it item) bool { return numberIn(t, it["skey"]) == 5 }), dynamotest.On("Query"))

		require.NoError(t, removals["truncate"](t.Context(), s.through(t, proxy.Client()), 10))

		hidden.Remove()
		require.Equal(t, []int{5}, s.numbers(t, trimmed))
		require.NoError(t, removals["truncate"](t.Context(), s.Engine, 10))
		assert.Empty(t, s.numbers(t, trimmed))
	})
}

func TestPackedRemovalsAtTheSameTimeLeaveNothing(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, packed)
	s.blanked(t, "truncate", 5)
	s.append(t, "truncate", 6, 25)
	db.Inject(dynamotest.Latency(0, time.Millisecond))
	ends := make(chan error)
	for n := range 5 {
		go func() { ends <- removals["truncate"](t.Context(), s.Engine, uint64(10+5*n)) }()
	}
	for range 5 {
		assert.NoError(t, <-ends)
	}

	assert.Empty(t, s.numbers(t, trimmed))
	_, err := read(t, s.Engine, trimmed, 1, 30)
	require.ErrorAs(t, err, new(*journal.TruncatedError))
	assert.EqualValues(t, 31, s.head(t, trimmed).TruncatedBefore, fmt.Sprint(s.head(t, trimmed)))
}
