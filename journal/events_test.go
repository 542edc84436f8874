package journal_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

func TestEventsReadsPastThePageOf1MB(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		const n = 1_500
		for from := 1; from <= n; from += 75 {
			list := events(from, 75)
			for i := range list {
				list[i].Payload = noise(from+i, 1<<10)
			}
			mustAppend(t, s, storage.Commit{Aggregate: user("1"), Expected: uint64(from - 1), Events: list})
		}
		client := &meddler{Client: s.client}
		j := s.through(t, client)
		client.calls = nil

		records, err := read(t, j, user("1"), 1, n)

		require.NoError(t, err)
		require.Len(t, records, n)
		for i, r := range records {
			require.EqualValues(t, i+1, r.Number)
			require.Equal(t, noise(i+1, 1<<10), r.Payload)
		}
		assert.Equal(t, map[string]int{"query": 2}, client.calls, "two pages of the index and nothing else")
	})
}

func TestEventsGivesAnyRangeOfTheHistory(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 30)
		s.write(t, user("2"), 1, 30)
		for _, r := range [][2]int{{1, 30}, {1, 1}, {30, 30}, {1, 8}, {1, 9}, {22, 30}, {23, 30}, {5, 25}} {
			records, err := read(t, s.Engine, user("1"), uint64(r[0]), uint64(r[1]))
			require.NoError(t, err)
			requireNumbers(t, records, r[0], r[1])
		}
		records, err := read(t, s.Engine, user("1"), 0, 3)
		require.NoError(t, err)
		requireNumbers(t, records, 1, 3) // there is no event 0
	})
}

func TestEventsReadsAFewByKeyAndMoreFromTheIndex(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	s.write(t, user("1"), 1, 30)
	client := &meddler{Client: s.client}
	j := s.through(t, client)
	for to, want := range map[uint64]map[string]int{
		1: {"get": 1}, 2: {"batchGet": 1}, 8: {"batchGet": 1}, 9: {"query": 1}, 30: {"query": 1},
	} {
		client.calls = nil
		_, err := read(t, j, user("1"), 1, to)
		require.NoError(t, err)
		assert.Equal(t, want, client.calls, "events 1 to %d", to)
	}
}

func TestAnEmptyRangeGivesNothingAndAsksForNothing(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		client := &meddler{Client: s.client}
		j := s.through(t, client)
		client.calls = nil
		for _, r := range [][2]uint64{{0, 0}, {1, 0}, {5, 4}, {math.MaxUint64, 1}} {
			records, err := read(t, j, user("1"), r[0], r[1])
			require.NoError(t, err)
			assert.Empty(t, records)
		}
		assert.Empty(t, client.calls)
	})
}

func TestEventsThatDoNotExistAreAnErrorHoweverManyAreAskedFor(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 12)
		for name, r := range map[string][2]uint64{
			"one more":       {1, 13},
			"by key":         {10, 13},
			"all there may":  {1, math.MaxUint64},
			"the last of it": {math.MaxUint64, math.MaxUint64},
		} {
			_, err := read(t, s.Engine, user("1"), r[0], r[1])
			assert.ErrorAs(t, err, new(*journal.CorruptItemError), name)
		}
	})
}

func TestEventsOfAnInvalidIDAreAnError(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		_, err := read(t, s.Engine, user(""), 1, 2)
		require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
		_, err = s.Head(t.Context(), user(""))
		assert.ErrorAs(t, err, new(*aggregate.InvalidIDError))
	})
}

func TestAMissingEventIsAnErrorWithItsKeys(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for value, c := range map[string]struct{ missing, n int }{"by-key": {2, 3}, "by-index": {15, 20}, "many": {3, 120}} {
			id, table := user(value), s.Config().Tables.Journal
			s.covered(t, id, c.n)
			s.remove(t, table, s.keyOf(id, c.missing))
			if value == "many" {
				for n := 4; n <= 110; n++ {
					s.remove(t, table, s.keyOf(id, n))
				}
			}

			records, err := read(t, s.Engine, id, 1, uint64(c.n))

			var corrupt *journal.CorruptItemError
			require.ErrorAs(t, err, new(*journal.CorruptItemError), value)
			require.ErrorAs(t, err, &corrupt)
			assert.Equal(t, table, corrupt.Table)
			assert.Equal(t, s.keyOf(id, c.missing), s.placeOf(corrupt))
			assert.ErrorContains(t, err, fmt.Sprintf("read events 1 to %d of %s", c.n, id))
			assert.ErrorContains(t, err, "restore it from a backup")
			assert.Less(t, len(records), c.missing, "nothing after the gap")
		}
	})
}

func TestACorruptEventIsAnErrorWithItsKeys(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		for name, c := range map[string]struct {
			change func(a journal.Attributes) item
			text   string
		}{
			"no payload":            {func(a journal.Attributes) item { return item{a.Payload: nil} }, "has no binary or text in "},
			"a payload of no bytes": {func(a journal.Attributes) item { return item{a.Payload: number(1)} }, "has no binary or text in "},
			"no time":               {func(a journal.Attributes) item { return item{a.OccurredAt: nil} }, "has no whole number in "},
			"a fraction of a time": {func(a journal.Attributes) item {
				return item{a.OccurredAt: &types.AttributeValueMemberN{Value: "1.5"}}
			}, "has no whole number in "},
			"another number":      {func(a journal.Attributes) item { return item{a.SequenceNumber: number(99)} }, "does not fit its aggregate and sequence number 99"},
			"no number":           {func(a journal.Attributes) item { return item{a.SequenceNumber: nil} }, "has no sequence number from 1 on in "},
			"a negative number":   {func(a journal.Attributes) item { return item{a.SequenceNumber: number(-1)} }, "has no sequence number from 1 on in "},
			"another aggregate":   {func(a journal.Attributes) item { return item{a.AggregateID: text("order-1")} }, " that fits its partition"},
			"no aggregate":        {func(a journal.Attributes) item { return item{a.AggregateID: nil} }, " that fits its partition"},
			"metadata of numbers": {func(journal.Attributes) item { return item{"metadata": metadata(number(1))} }, `has metadata "key" that is not text`},
		} {
			t.Run(name, func(t *testing.T) {
				table, id := s.Config().Tables.Journal, user(name)
				s.write(t, id, 1, 20)
				s.change(t, table, s.keyOf(id, 3), c.change(s.Engine.Config.Attributes))
				for _, to := range []uint64{4, 20} { // by key and by index
					records, err := read(t, s.Engine, id, 1, to)

					var corrupt *journal.CorruptItemError
					require.ErrorAs(t, err, &corrupt)
					assert.ErrorAs(t, err, new(*journal.CorruptItemError))
					assert.ErrorContains(t, err, fmt.Sprintf("item %q / %q of table %q", storage.ShardKey(id.Type, s.Shard(id)), id.String()+"-3", table))
					assert.ErrorContains(t, err, c.text)
					assert.Less(t, len(records), 3)
				}
			})
		}
	})
}

func metadata(value types.AttributeValue) types.AttributeValue {
	return &types.AttributeValueMemberM{Value: item{"key": value}}
}

func TestAReaderThatStopsEarlyCausesNoFurtherReads(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 200)
		client := &meddler{Client: s.client}
		client.query = func(_ int, in *dynamodb.QueryInput, send func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
			in.Limit = aws.Int32(50)
			out, err := send()
			if err == nil && in.ExclusiveStartKey == nil {
				out.Items = s.hide(out.Items, func(n int) bool { return n > 20 && n < 30 })
			}
			return out, err
		}
		j := s.through(t, client)
		for stop, want := range map[int]map[string]int{
			1: {"query": 1}, 20: {"query": 1}, 25: {"query": 1, "batchGet": 1}, 50: {"query": 1, "batchGet": 1}, 60: {"query": 2, "batchGet": 1},
		} {
			client.calls = nil
			seen := 0
			for r, err := range j.Events(t.Context(), user("1"), 1, 200) {
				require.NoError(t, err)
				seen++
				require.EqualValues(t, seen, r.Number)
				if seen == stop {
					break
				}
			}
			assert.Equal(t, stop, seen)
			assert.Equal(t, want, client.calls, "stopped after event %d", stop)
		}
	})
}

// A history of any length is read with the memory of one page, plus 100 events that the index
// lacks.
func TestAReaderHoldsNoMoreThanAPageAndWhatIsReadByKey(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		const n, pageSize, most = 700, 50, 100
		s.write(t, user("1"), 1, n)
		// held is the number of items that were read but not yielded yet
		held, queries, batches := 0, 0, 0
		client := &meddler{Client: s.client}
		client.query = func(_ int, in *dynamodb.QueryInput, send func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
			queries++
			assert.Zero(t, held, "a page is asked for when the one before has been given")
			in.Limit = aws.Int32(pageSize)
			out, err := send()
			if err == nil {
				out.Items = s.hide(out.Items, func(n int) bool { return n > 130 && n < 390 || n == 510 || n > 580 })
				held += len(out.Items)
			}
			return out, err
		}
		client.batchGet = func(_ int, in *dynamodb.BatchGetItemInput, send func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
			batches++
			for _, request := range in.RequestItems {
				assert.LessOrEqual(t, len(request.Keys), most)
				assert.LessOrEqual(t, held, pageSize, "no more than the page that is being read")
				held += len(request.Keys)
			}
			return send()
		}
		client.getItem = func(_ int, _ *dynamodb.GetItemInput, send func() (*dynamodb.GetItemOutput, error)) (*dynamodb.GetItemOutput, error) {
			held++
			return send()
		}
		j := s.through(t, client)
		held = 0 // opening reads the descriptor

		given := 0
		for r, err := range j.Events(t.Context(), user("1"), 1, n) {
			require.NoError(t, err)
			given++
			held--
			require.EqualValues(t, given, r.Number)
		}

		assert.Equal(t, n, given)
		assert.Zero(t, held)
		assert.GreaterOrEqual(t, queries, n/pageSize)
		assert.Equal(t, 5, batches, "259 events and 120")
	})
}

func TestAContextThatEndsWhileEventsAreReadEndsThemWithItsError(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 40)
		s.remove(t, s.Config().Tables.Journal, s.keyOf(user("1"), 35))
		for name, stopAt := range map[string]string{"in the index": "query", "by key": "batchGet", "while waiting for an absent event": "get"} {
			ctx, cancel := context.WithCancel(t.Context())
			client := &meddler{Client: s.client}
			j := s.through(t, client)
			if stopAt == "query" {
				client.query = func(_ int, _ *dynamodb.QueryInput, send func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
					cancel()
					return send()
				}
			}
			client.getItem = func(_ int, _ *dynamodb.GetItemInput, send func() (*dynamodb.GetItemOutput, error)) (*dynamodb.GetItemOutput, error) {
				out, err := send()
				cancel()
				return out, err
			}
			client.batchGet = func(_ int, _ *dynamodb.BatchGetItemInput, send func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
				cancel()
				return send()
			}
			from := uint64(1)
			if stopAt == "batchGet" {
				from = 34
			}

			var last error
			for _, last = range j.Events(ctx, user("1"), from, 40) {
				continue
			}

			require.ErrorIs(t, last, context.Canceled, name)
			assert.NotErrorAs(t, last, new(*journal.CorruptItemError), name)
			cancel()
		}
	})
}
