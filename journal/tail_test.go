package journal_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// tailOf returns a query for the tail of an aggregate's shard.
func (s store) tailOf(id aggregate.ID) storage.TailQuery {
	return storage.TailQuery{AggregateType: id.Type, Shard: s.Shard(id)}
}

func tail(t *testing.T, j *engine.Engine, q storage.TailQuery) storage.TailPage {
	t.Helper()
	page, err := j.TailShard(t.Context(), q)
	require.NoError(t, err)
	return page
}

// cursorAfter returns the cursor just after an event.
func cursorAfter(r *journal.Record) storage.Cursor {
	return storage.Cursor{OccurredAt: r.WrittenAt.UnixMilli(), SortKey: storage.SortKey(r.Aggregate, r.Number)}
}

func places(records []*journal.Record) []string {
	list := make([]string, len(records))
	for i, r := range records {
		list[i] = fmt.Sprintf("%s/%d", r.Aggregate.Value, r.Number)
	}
	return list
}

func TestTheTailGivesAShardInTheOrderOfTime(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		// 1 and n2 are in one shard, 2 is in another one.
		require.Equal(t, s.Shard(user("1")), s.Shard(user("n2")))
		require.NotEqual(t, s.Shard(user("1")), s.Shard(user("2")))
		for n := range 3 {
			for _, value := range []string{"1", "2", "n2"} {
				s.clock.advance(time.Millisecond)
				s.write(t, user(value), n+1, 1)
			}
		}
		// Another type with a shard of the same number.
		mustAppend(t, s, storage.Commit{Aggregate: aggregate.ID{Type: "user", Value: "1"}, Events: events(1, 1)})

		page := tail(t, s.Engine, s.tailOf(user("1")))

		assert.Equal(t, []string{"1/1", "n2/1", "1/2", "n2/2", "1/3", "n2/3"}, places(page.Records))
		assert.False(t, page.More)
		assert.Empty(t, page.Corrupt)
		q := s.tailOf(user("1"))
		q.After = page.Next
		assert.Empty(t, tail(t, s.Engine, q).Records, "after the last one")
		if !s.isPacked() {
			assert.Equal(t, cursorAfter(page.Records[5]), page.Next)
		}
		whole, err := read(t, s.Engine, user("1"), 1, 3)
		require.NoError(t, err)
		assert.Equal(t, whole[2], page.Records[4], "a record of the tail is that of the table")
	})
}

func TestAnEmptyTailKeepsItsPlace(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for _, after := range []storage.Cursor{{}, storage.CursorAt(s.clock.now()), {OccurredAt: 5, SortKey: "user-account-1-1"}} {
			page := tail(t, s.Engine, storage.TailQuery{AggregateType: "user-account", Shard: 1, After: after})
			assert.Equal(t, storage.TailPage{Records: []*journal.Record{}, Next: after}, page)
		}
	})
}

func TestTheTailGoesOnExactlyWhereAPageEnded(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		const n = 350 // of 4 KB, more than a page
		payload := make([]byte, 4<<10)
		for from := 0; from < n; from += 50 {
			mustAppend(t, s, storage.Commit{
				Aggregate: user("1"), Expected: uint64(from), Events: repeat(50, storage.Event{Payload: payload}),
			})
			if from%100 == 0 {
				s.clock.advance(time.Millisecond) // 100 events for each millisecond
			}
		}
		seen := map[uint64]int{}
		var sizes []int
		q := s.tailOf(user("1"))
		for {
			page := tail(t, s.Engine, q)
			size := 0
			for _, r := range page.Records {
				seen[r.Number]++
				size += r.Size()
			}
			sizes = append(sizes, size)
			assert.Less(t, size, 2<<20)
			q.After = page.Next
			if !page.More {
				break
			}
		}

		assert.Len(t, seen, n)
		for number, times := range seen {
			require.Equal(t, 1, times, "event %d", number)
		}
		if !s.isPacked() { // its index has only the keys of large commits
			assert.Len(t, sizes, 2, "pages")
		}
		assert.Empty(t, tail(t, s.Engine, q).Records, "nothing is left")

		s.clock.advance(time.Millisecond)
		s.write(t, user("n2"), 1, 1)
		assert.Equal(t, []string{"n2/1"}, places(tail(t, s.Engine, q).Records), "what came since")
	})
}

func TestTheTailGoesOnAfterAnyEventOfAMillisecond(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		for _, value := range []string{"1", "n2"} { // one shard, and the clock stands still
			s.write(t, user(value), 1, 12)
		}
		all := tail(t, s.Engine, s.tailOf(user("1"))).Records
		require.Len(t, all, 24)
		for i, r := range all {
			q := s.tailOf(user("1"))
			q.After = cursorAfter(r)

			rest := tail(t, s.Engine, q)

			require.Equal(t, places(all[i+1:]), places(rest.Records), "after %s", places(all[i:i+1]))
		}
		q := s.tailOf(user("1"))
		q.After = storage.CursorAt(s.clock.now())
		assert.Equal(t, places(all), places(tail(t, s.Engine, q).Records), "from the beginning of the millisecond")
		q.After = storage.CursorAt(s.clock.now().Add(time.Millisecond))
		assert.Empty(t, tail(t, s.Engine, q).Records)
	})
}

func TestTheTailEndsWhereItIsToldTo(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		start := s.clock.now()
		for n := range 5 {
			s.write(t, user("1"), n+1, 1)
			s.clock.advance(time.Second)
		}
		for until, want := range map[time.Duration]int{
			-time.Millisecond: 0, 0: 1, 999 * time.Millisecond: 1, time.Second: 2, time.Second + 999*time.Microsecond: 2, time.Hour: 5,
		} {
			q := s.tailOf(user("1"))
			q.Until = start.Add(until)
			page := tail(t, s.Engine, q)
			assert.Len(t, page.Records, want, "until %s", until)
		}
		q := s.tailOf(user("1"))
		q.After, q.Until = storage.CursorAt(start.Add(time.Second)), start.Add(3*time.Second)
		assert.Equal(t, []string{"1/2", "1/3", "1/4"}, places(tail(t, s.Engine, q).Records))
	})
}

// DynamoDB refuses a range whose end is before its beginning.
func TestATailThatEndsBeforeItBeginsIsEmptyAndNotAskedFor(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		client := &meddler{Client: s.client}
		j := s.through(t, client)
		client.calls = nil
		after := storage.CursorAt(s.clock.now())

		page := tail(t, j, storage.TailQuery{AggregateType: "user-account", After: after, Until: s.clock.now().Add(-time.Millisecond)})

		assert.Empty(t, page.Records)
		assert.Equal(t, after, page.Next)
		assert.False(t, page.More)
		assert.Empty(t, client.calls)
	})
}

func TestATailOfNumbersOnlyLeavesTheRestOut(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		mustAppend(t, s, storage.Commit{Aggregate: user("1"), Events: []storage.Event{
			{ID: "event", Type: "registered", Payload: []byte("payload"), Metadata: aggregate.Metadata{"k": "v"}},
		}})
		q := s.tailOf(user("1"))
		q.NumbersOnly = true

		page := tail(t, s.Engine, q)

		require.Len(t, page.Records, 1)
		r := page.Records[0]
		assert.Equal(t, []any{user("1"), uint64(1), s.clock.now().UTC()}, []any{r.Aggregate, r.Number, r.WrittenAt})
		assert.Empty(t, r.EventType)
		assert.Empty(t, r.Payload)
		assert.Empty(t, r.Metadata)
		q.After = page.Next
		assert.Empty(t, tail(t, s.Engine, q).Records, "after the last one")
	})
}

func TestItemsThatAreNoRecordsDoNotStopTheTail(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c := s.Config()
		for n := range 5 {
			s.write(t, user("1"), n+1, 1)
			s.clock.advance(time.Millisecond)
		}
		damage := map[int]item{2: {c.Classic.Attributes.Payload: nil}, 3: {c.Classic.Attributes.AggregateID: nil}, 5: {c.Classic.Attributes.SequenceNumber: number(0)}}
		if s.isPacked() {
			damage = map[int]item{2: {"e": binary("\xff")}, 3: {"c": nil}, 5: {"n": number(7)}}
		}
		for n, change := range damage {
			s.change(t, c.Tables.Journal, s.keyOf(user("1"), n), change)
		}

		page := tail(t, s.Engine, s.tailOf(user("1")))

		assert.Equal(t, []string{"1/1", "1/4"}, places(page.Records))
		var sortKeys []string
		for _, corrupt := range page.Corrupt {
			sortKeys = append(sortKeys, corrupt.SortKey)
		}
		prefix := s.either("user-account-1-", "")
		assert.ElementsMatch(t, []string{prefix + "2", prefix + "3", prefix + "5"}, sortKeys)
		assert.EqualValues(t, 1_700_000_000_004, page.Next.OccurredAt, "after the corrupt one too")
		q := s.tailOf(user("1"))
		q.After = page.Next
		assert.Empty(t, tail(t, s.Engine, q).Corrupt)
	})
}

func TestEventsOfAnyTimeAreInTheTail(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		table := s.Config().Tables.Journal
		// Before 1970, JavaScript's times, and nanoseconds.
		for n, at := range []int64{-86_400_000, 0, 999, 1_600_000_000_000_000_000} {
			s.put(t, table, s.foreignEvent(user("1"), n+1, binary("x"), at))
		}
		s.write(t, user("n2"), 1, 1)

		page := tail(t, s.Engine, s.tailOf(user("1")))
		assert.Equal(t, []string{"1/1", "1/2", "1/3", "n2/1", "1/4"}, places(page.Records))
		assert.Equal(t, storage.Cursor{OccurredAt: 1_600_000_000_000_000_000, SortKey: "user-account-1-4"}, page.Next)

		q := s.tailOf(user("1"))
		q.Until = s.clock.now()
		page = tail(t, s.Engine, q)
		assert.Equal(t, []string{"1/1", "1/2", "1/3", "n2/1"}, places(page.Records), "without those of the future")
		assert.Equal(t, cursorAfter(page.Records[3]), page.Next, "which do not drag the cursor along")
	})
}

func TestTheShardsTogetherHoldEveryEventOnce(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		var want, got []string
		for i := range 30 {
			s.write(t, user(fmt.Sprint(i)), 1, 2)
			want = append(want, fmt.Sprintf("%d/1", i), fmt.Sprintf("%d/2", i))
		}
		for shard := range s.Engine.Config.Shards {
			got = append(got, places(tail(t, s.Engine, storage.TailQuery{AggregateType: "user-account", Shard: shard}).Records)...)
		}
		slices.Sort(want)
		slices.Sort(got)
		assert.Equal(t, want, got)
	})
}

// A page may be empty because of a filter or a limit without being the last one.
func TestAPageMayBeEmptyAndNotTheLast(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	s.write(t, user("1"), 1, 4)
	client := &meddler{Client: s.client}
	client.query = func(call int, in *dynamodb.QueryInput, send func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
		in.Limit = aws.Int32(2)
		out, err := send()
		if call == 1 {
			out.Items = nil
		}
		return out, err
	}
	j := s.through(t, client)
	all := tail(t, s.Engine, s.tailOf(user("1"))).Records

	page := tail(t, j, s.tailOf(user("1")))

	assert.Empty(t, page.Records)
	assert.True(t, page.More)
	assert.Equal(t, cursorAfter(all[1]), page.Next)
}

func TestAPageOfTheTailCanBeLimited(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for n := range 5 {
			s.write(t, user("1"), n+1, 1)
		}
		q := s.tailOf(user("1"))
		q.Limit = 3

		first := tail(t, s.Engine, q)
		q.After = first.Next
		second := tail(t, s.Engine, q)

		assert.Len(t, first.Records, 3)
		assert.True(t, first.More)
		assert.Len(t, second.Records, 2)
		assert.False(t, second.More)
	})
}

// plain is a client that is not the SDK's own.
type plain struct{ journal.Client }

func TestTheTailIsTheSameForAClientOfTheUsersOwn(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		a, table := s.Engine.Config.Attributes, s.Config().Tables.Journal
		mustAppend(t, s, storage.Commit{Aggregate: user("n2"), Events: []storage.Event{
			{ID: "id", Type: "type", Payload: []byte("payload"), Metadata: aggregate.Metadata{"correlation_id": "c", "empty": ""}},
			{Payload: []byte{}},
		}})
		odd := []item{
			{a.Payload: text("as text")},
			{a.Payload: number(1)},
			{a.AggregateID: text("other-1")},
			{a.SequenceNumber: number(77)},
			{a.SequenceNumber: &types.AttributeValueMemberN{Value: "1.5"}},
			{a.OccurredAt: &types.AttributeValueMemberN{Value: "1699999999999.5"}},
			{"event_id": nil},
			{"event_id": number(1), "event_type": &types.AttributeValueMemberNULL{Value: true}},
			{"encoding": number(1)},
			{"metadata": text("text")},
			{"metadata": &types.AttributeValueMemberM{Value: item{"key": number(1)}}},
			{
				"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{number(1), text("x")}}, "is": &types.AttributeValueMemberBOOL{Value: true},
				"texts": &types.AttributeValueMemberSS{Value: []string{"x"}}, "map": &types.AttributeValueMemberM{Value: item{}},
			},
		}
		for i, change := range odd {
			s.write(t, user("1"), i+1, 1)
			s.clock.advance(time.Millisecond)
			s.change(t, table, s.keyOf(user("1"), i+1), change)
		}
		stray := s.get(t, table, s.keyOf(user("n2"), 1))
		stray[a.SortKey], stray[a.AggregateID] = text("user-account.1-1"), text("user-account.1")
		s.put(t, table, stray)
		slow := testjournal.Open(t, plain{s.Given}, s.Config())
		for _, numbers := range []bool{false, true} {
			q := s.tailOf(user("1"))
			q.NumbersOnly = numbers

			page := tail(t, s.Engine, q)

			assert.Len(t, append(places(page.Records), make([]string, len(page.Corrupt))...), len(odd)+3)
			assert.Equal(t, tail(t, slow.Internal(), q), page, "numbers only: %v", numbers)
		}
	})
}
