package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// wrapped is an encoding that puts its name, the place and brackets around a payload. It declines
// payloads that begin with "short".
type wrapped struct {
	name    string
	fail    error
	encodes atomic.Int64
}

func (w *wrapped) Name() string  { return w.name }
func (w *wrapped) Overhead() int { return 200 }

func (w *wrapped) prefix(at journal.Place) string { return fmt.Sprintf("%s@%s(", w.name, at) }

func (w *wrapped) Encode(ctx context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	w.encodes.Add(1)
	if w.fail != nil || ctx.Err() != nil {
		return nil, false, errors.Join(w.fail, ctx.Err())
	}
	if bytes.HasPrefix(payload, []byte("short")) {
		return nil, false, nil
	}
	return fmt.Appendf(nil, "%s%s)", w.prefix(at), payload), true, nil
}

func (w *wrapped) Decode(ctx context.Context, at journal.Place, encoded []byte) ([]byte, error) {
	if w.fail != nil || ctx.Err() != nil {
		return nil, errors.Join(w.fail, ctx.Err())
	}
	inner, ok := bytes.CutPrefix(encoded, []byte(w.prefix(at)))
	inner, ok2 := bytes.CutSuffix(inner, []byte(")"))
	if !ok || !ok2 {
		return nil, errors.New("not from this place")
	}
	return inner, nil
}

func encodings(list ...journal.Encoding) func(*journal.Config) {
	return func(c *journal.Config) { c.Encodings = list }
}

func TestPayloadsAreEncodedInOrderAndDecodedInReverse(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		j := s.through(t, s.client, encodings(&wrapped{name: "a"}, &wrapped{name: "b"}))
		payload := []byte("long")
		commit := storage.Commit{
			Aggregate: user("1"), Events: []storage.Event{{Payload: payload}, {Payload: []byte("short")}},
			Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("state")},
		}
		mustAppend(t, j, commit)
		assert.Equal(t, "long", string(payload), "the caller's payload is left alone")
		assert.Empty(t, commit.Events[0].Encoding)
		assert.Equal(t, &journal.Snapshot{Number: 2, Payload: []byte("state")}, commit.Snapshot, "and so is the snapshot")

		c, a := s.Config(), s.Engine.Config.Attributes
		first := s.get(t, c.Tables.Journal, s.keyOf(user("1"), 1))
		assert.Equal(t, text("a,b"), first["encoding"])
		assert.Equal(t, binary("b@event 1 of user-account-1(a@event 1 of user-account-1(long))"), first[a.Payload])
		second := s.get(t, c.Tables.Journal, s.keyOf(user("1"), 2))
		assert.NotContains(t, second, "encoding", "what nothing was applied to looks as ever")
		assert.Equal(t, binary("short"), second[a.Payload])
		head := s.get(t, c.Tables.Snapshot, s.keyOf(user("1"), 0))
		assert.Equal(t, text("a,b"), head["encoding"])
		assert.Equal(t, binary("b@snapshot of user-account-1 at event 2(a@snapshot of user-account-1 at event 2(state))"), head[a.Payload])

		// in another order now
		other := s.through(t, s.client, encodings(&wrapped{name: "b"}, &wrapped{name: "a"}))
		for _, j := range []*engine.Engine{j, other} {
			records, err := read(t, j, user("1"), 1, 2)
			require.NoError(t, err)
			assert.Equal(t, "long", string(records[0].Payload))
			assert.Empty(t, records[0].Encoding)
			assert.Equal(t, "short", string(records[1].Payload))
			h := mustHead(t, j, user("1"))
			assert.Equal(t, &journal.Snapshot{Number: 2, Payload: []byte("state")}, h.Snapshot)
			page, err := j.TailShard(t.Context(), storage.TailQuery{AggregateType: "user-account", Shard: j.Shard(user("1"))})
			require.NoError(t, err)
			var payloads []string
			for _, r := range page.Records {
				plain, err := j.Decode(t.Context(), r)
				require.NoError(t, err)
				payloads = append(payloads, string(plain.Payload))
			}
			assert.ElementsMatch(t, []string{"long", "short"}, payloads)
		}
	})
}

func TestManyEventsAreDecodedWhicheverWayTheyAreRead(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		j := s.through(t, s.client, encodings(&wrapped{name: "a"}))
		mustAppend(t, j, storage.Commit{Aggregate: user("1"), Events: events(1, 30)})
		for _, to := range []int{1, 8, 30} {
			records, err := read(t, j, user("1"), 1, uint64(to))
			require.NoError(t, err)
			requireNumbers(t, records, 1, to)
		}
	})
}

func TestARetrySendsTheSameBytes(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
	e := &wrapped{name: "a"}
	j := testjournal.Open(t, db.Client(), journal.Config{Encodings: []journal.Encoding{e}})
	lost := db.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(2))

	testjournal.Append(t, j, storage.Commit{
		Aggregate: user("1"), Events: events(1, 3), Snapshot: &journal.Snapshot{Number: 3, Payload: []byte("state")},
	})
	assert.Equal(t, 2, lost.Fired())
	assert.EqualValues(t, 4, e.encodes.Load(), "three events and the snapshot, once each")
}

func TestAnEncodingThatTheConfigLacksIsNamed(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		j := s.through(t, s.client, encodings(&wrapped{name: "a"}, &wrapped{name: "b"}))
		mustAppend(t, j, storage.Commit{
			Aggregate: user("1"), Events: []storage.Event{{Payload: []byte("short")}, {Payload: []byte("long")}},
			Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("state")},
		})
		lacking := s.through(t, s.client, encodings(&wrapped{name: "b"}))

		records, err := read(t, lacking, user("1"), 1, 2)
		require.Len(t, records, 1, "what can be read before it")
		var named *journal.EncodingError
		require.ErrorAs(t, err, &named)
		assert.ErrorAs(t, err, new(*journal.EncodingError))
		assert.Equal(t, journal.Place{Aggregate: user("1"), Number: 2}, named.Place)
		assert.Equal(t, "a", named.Encoding)
		assert.Contains(t, err.Error(), "Config.Encodings")

		_, err = lacking.Head(t.Context(), user("1"))
		require.ErrorAs(t, err, &named)
		assert.Equal(t, journal.Place{Aggregate: user("1"), Number: 2, Snapshot: true}, named.Place)

		query := storage.TailQuery{AggregateType: "user-account", Shard: s.Shard(user("1"))}
		page, err := lacking.TailShard(t.Context(), query)
		require.NoError(t, err, "one event must not stop the tail")
		require.Len(t, page.Records, 2)
		for _, r := range page.Records { // they have the same time, and so any order
			_, err = lacking.Decode(t.Context(), r)
			assert.Equal(t, r.Number == 2, errors.As(err, new(*journal.EncodingError)), "event %d: %v", r.Number, err)
		}
	})
}

func TestNothingIsWrittenWhenAnEncodingFails(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		broken := errors.New("broken")
		j := s.through(t, s.client, encodings(&wrapped{name: "a", fail: broken}))
		_, err := j.Append(t.Context(), storage.Commit{Aggregate: user("1"), Events: events(1, 1)})
		require.ErrorIs(t, err, broken)
		assert.ErrorAs(t, err, new(*journal.EncodingError))
		s.requireNothingWritten(t, user("1"))

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.through(t, s.client, encodings(&wrapped{name: "a"})).Append(ctx, storage.Commit{Aggregate: user("1"), Events: events(1, 1)})
		assert.ErrorIs(t, err, context.Canceled, "the encoding gets the context")
	})
}

// slow is an encoding that takes a minute on the journal's clock.
type slow struct {
	wrapped
	now time.Time
}

func (s *slow) Encode(ctx context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	s.now = s.now.Add(time.Minute)
	return s.wrapped.Encode(ctx, at, payload)
}

// A key service may take longer than readers of the tail wait for an event of some date.
func TestACommitIsDatedAfterItsEncodings(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		key := &slow{wrapped: wrapped{name: "a"}, now: time.UnixMilli(1e12).UTC()}
		j := s.through(t, s.client, encodings(key), func(c *journal.Config) { c.Now = func() time.Time { return key.now } })
		receipt := mustAppend(t, j, storage.Commit{
			Aggregate: user("1"), Events: events(1, 3), Snapshot: &journal.Snapshot{Number: 3, Payload: []byte("state")},
		})
		assert.Equal(t, time.UnixMilli(1e12).UTC().Add(4*time.Minute), key.now)
		assert.Equal(t, key.now, receipt.OccurredAt)
		records, err := read(t, j, user("1"), 1, 3)
		require.NoError(t, err)
		for _, r := range records {
			assert.Equal(t, key.now, r.OccurredAt)
		}
	})
}

func TestAConflictNeedsNoDecoding(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		mustAppend(t, s.through(t, s.client, encodings(&wrapped{name: "a"})), storage.Commit{
			Aggregate: user("1"), Events: events(1, 2), Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("state")},
		})

		_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: 1, Events: events(2, 1)})

		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.EqualValues(t, 2, conflict.Actual)
	})
}

// Another program's update sets payload and version, and leaves our attributes.
func TestASnapshotThatAPeerPutInThePlaceOfAnEncodedOneIsRead(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		j := s.through(t, s.client, encodings(&wrapped{name: "a"}))
		mustAppend(t, j, storage.Commit{
			Aggregate: user("1"), Events: events(1, 2), Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("state")},
		})
		a := s.Engine.Config.Attributes
		s.change(t, s.Config().Tables.Snapshot, s.keyOf(user("1"), 0), item{a.Payload: binary("the peer's"), a.Version: number(3)})

		for _, j := range []*engine.Engine{j, j.Raw(), s.Engine} {
			head := mustHead(t, j, user("1"))
			assert.Equal(t, &journal.Snapshot{Payload: []byte("the peer's")}, head.Snapshot)
		}
	})
}

func TestASnapshotInPlainTakesTheEncodingOfTheOneBeforeAway(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		j := s.through(t, s.client, encodings(&wrapped{name: "a"}))
		for i, payload := range []string{"state 1", "short 2", "state 3"} {
			n := uint64(i + 1)
			mustAppend(t, j, storage.Commit{
				Aggregate: user("1"), Expected: n - 1, Events: events(int(n), 1), Snapshot: &journal.Snapshot{Number: n, Payload: []byte(payload)},
			})
			head := mustHead(t, j, user("1"))
			assert.Equal(t, &journal.Snapshot{Number: n, Payload: []byte(payload)}, head.Snapshot)
			it := s.get(t, s.Config().Tables.Snapshot, s.keyOf(user("1"), 0))
			assert.Equal(t, n != 2, it["encoding"] != nil)
		}
	})
}

func TestAnEncodedSnapshotAheadOfTheHeadIsIgnored(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		j := s.through(t, s.client, encodings(&wrapped{name: "a"}))
		mustAppend(t, j, storage.Commit{
			Aggregate: user("1"), Events: events(1, 2), Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("state")},
		})
		s.change(t, s.Config().Tables.Snapshot, s.keyOf(user("1"), 0), item{s.Engine.Config.Attributes.Version: number(1)})

		head := mustHead(t, j, user("1"))
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 1}, head)
	})
}

func TestARawJournalCopiesWhatIsStored(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		from := s.through(t, s.client, encodings(&wrapped{name: "a"}))
		mustAppend(t, from, storage.Commit{
			Aggregate: user("1"), Events: []storage.Event{{ID: "1", Payload: []byte("long")}, {ID: "2", Payload: []byte("short")}},
			Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("state")},
		})
		mustAppend(t, s, storage.Commit{Aggregate: user("1"), Expected: 2, Events: []storage.Event{{ID: "3", Payload: []byte("plain")}}})
		to := setup(t, journal.Config{Encodings: []journal.Encoding{&wrapped{name: "a"}, &wrapped{name: "b"}}})

		head := mustHead(t, s.Raw(), user("1")) // s has no encodings
		assert.Equal(t, "a", head.Snapshot.Encoding)
		commit := storage.Commit{Aggregate: user("1"), Snapshot: head.Snapshot}
		records, err := read(t, s.Raw(), user("1"), 1, 3)
		require.NoError(t, err)
		assert.Equal(t, "a", records[0].Encoding)
		assert.Empty(t, records[1].Encoding)
		for _, r := range records {
			commit.Events = append(commit.Events, storage.Event{ID: r.EventID, Payload: r.Payload, Encoding: r.Encoding})
		}
		mustAppend(t, to.Raw(), commit)

		copied, err := read(t, to.Raw(), user("1"), 1, 3)
		require.NoError(t, err)
		for i, r := range copied {
			assert.Equal(t, records[i].Payload, r.Payload, "to the byte")
			assert.Equal(t, records[i].Encoding, r.Encoding)
			plain, err := to.Decode(t.Context(), r)
			require.NoError(t, err)
			assert.Equal(t, []string{"long", "short", "plain"}[i], string(plain.Payload))
			assert.Equal(t, records[i].Encoding, r.Encoding, "a decoded record is another one")
		}
		there := mustHead(t, to, user("1"))
		assert.Equal(t, &journal.Snapshot{Number: 2, Payload: []byte("state")}, there.Snapshot)
	})
}

func TestACommitThroughARawJournalWakesTheWatchersOfTheOther(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		woken := 0
		stop := s.Watch("user-account", func(aggregate.ID, uint64) { woken++ })
		defer stop()
		mustAppend(t, s.Raw(), storage.Commit{Aggregate: user("1"), Events: events(1, 1)})
		assert.Equal(t, 1, woken)
	})
}

func TestAnEncodingForReadingIsNotAppliedToWhatIsNew(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		e := &wrapped{name: "a"}
		mustAppend(t, s.through(t, s.client, encodings(e)), storage.Commit{Aggregate: user("1"), Events: events(1, 1)})
		j := s.through(t, s.client, encodings(journal.ForReading(e)))
		mustAppend(t, j, storage.Commit{Aggregate: user("1"), Expected: 1, Events: events(2, 1)})

		records, err := read(t, j, user("1"), 1, 2)
		require.NoError(t, err)
		requireNumbers(t, records, 1, 2)
		records, err = read(t, j.Raw(), user("1"), 2, 2)
		require.NoError(t, err)
		assert.Empty(t, records[0].Encoding)
	})
}

func TestEventSizeCountsWhatEncodingsMayAdd(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{Encodings: []journal.Encoding{&wrapped{name: "a"}, &wrapped{name: "b"}}})
	e := storage.Event{ID: "1", Type: "t", Payload: []byte("long")}
	size, err := s.EventSize(user("1"), e)
	require.NoError(t, err)
	mustAppend(t, s, storage.Commit{Aggregate: user("1"), Events: []storage.Event{e}})
	stored := 0
	for name, value := range s.get(t, s.Config().Tables.Journal, s.keyOf(user("1"), 1)) {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			stored += len(name) + len(v.Value)
		case *types.AttributeValueMemberB:
			stored += len(name) + len(v.Value)
		case *types.AttributeValueMemberN:
			stored += len(name) + len(v.Value)/2 + 2
		}
	}
	assert.GreaterOrEqual(t, size, stored)

	raw, err := read(t, s.Raw(), user("1"), 1, 1)
	require.NoError(t, err)
	encoded := storage.Event{ID: "1", Type: "t", Payload: raw[0].Payload, Encoding: raw[0].Encoding}
	size, err = s.Raw().EventSize(user("1"), encoded)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, size, stored)
	assert.Less(t, size, stored+100, "what is encoded grows no more")
}

func TestTheLimitOfAnItemIsThatOfTheEncodedBytes(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		j := s.through(t, s.client, encodings(&wrapped{name: "a"}, &wrapped{name: "b"}, &wrapped{name: "c"}))
		fits, err := s.EventSize(user("1"), storage.Event{})
		require.NoError(t, err)
		payload := make([]byte, storage.MaxItemBytes-fits)
		mustAppend(t, s, storage.Commit{Aggregate: user("1"), Events: []storage.Event{{Payload: payload}}})

		_, err = j.EventSize(user("2"), storage.Event{Payload: payload})
		assert.ErrorAs(t, err, new(*journal.TooLargeError))
		_, err = j.Append(t.Context(), storage.Commit{Aggregate: user("2"), Events: []storage.Event{{Payload: payload}}})
		assert.ErrorAs(t, err, new(*journal.TooLargeError))

		if s.isPacked() { // it has another limit for states
			return
		}
		// The space that is left free for other programs, and the head without a snapshot.
		const headBytes = 1_024 + 190
		state := &journal.Snapshot{Number: 1, Payload: make([]byte, storage.MaxItemBytes-headBytes)}
		receipt := mustAppend(t, s, storage.Commit{Aggregate: user("3"), Events: events(1, 1), Snapshot: state})
		assert.False(t, receipt.SnapshotLeftOut)
		receipt = mustAppend(t, j, storage.Commit{Aggregate: user("4"), Events: events(1, 1), Snapshot: state})
		assert.True(t, receipt.SnapshotLeftOut)
	})
}

func TestEncodingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	a := &wrapped{name: "a"}
	for name, list := range map[string][]journal.Encoding{
		"nil": {nil}, "nil for reading": {journal.ForReading(nil)}, "no name": {&wrapped{}}, "two of a name": {a, a}, "comma": {&wrapped{name: "a,b"}},
		"long name": {&wrapped{name: strings.Repeat("a", 33)}},
	} {
		err := journal.Config{Encodings: list}.Validate()
		assert.ErrorAs(t, err, new(*journal.ConfigError), name)
	}
	assert.NoError(t, journal.Config{Encodings: []journal.Encoding{a, &wrapped{name: "a-b.c_1"}}}.Validate())
	taken := journal.Config{Classic: journal.ClassicOptions{Attributes: journal.Attributes{Payload: "encoding"}}}
	assert.ErrorAs(t, taken.Validate(), new(*journal.ConfigError))
}

func TestARecordThatIsNilIsNotDecoded(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{Encodings: []journal.Encoding{&wrapped{name: "a"}}})
	for name, j := range map[string]*engine.Engine{"decoded": s.Engine, "raw": s.Raw()} {
		record, err := j.Decode(t.Context(), nil)
		require.ErrorContains(t, err, "the record is nil", name)
		assert.Nil(t, record, name)
	}
}

func TestAnEncodingThatIsNoTextIsCorrupt(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	s.write(t, user("1"), 1, 1)
	s.change(t, s.Config().Tables.Journal, s.keyOf(user("1"), 1), item{"encoding": number(1)})
	_, err := read(t, s.Engine, user("1"), 1, 1)
	assert.ErrorAs(t, err, new(*journal.CorruptItemError))
}

func TestEverySnapshotOfAnAggregateIsEncodedInEachLayout(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		s := setup(t, journal.Config{Layout: layout, Encodings: []journal.Encoding{&wrapped{name: "a"}}})
		for n := uint64(1); n <= 3; n++ {
			mustAppend(t, s, storage.Commit{
				Aggregate: user("1"), Expected: n - 1, Events: events(int(n), 1),
				Snapshot:   &journal.Snapshot{Number: n, Payload: fmt.Append(nil, "state ", n), Schema: 7},
				Redundancy: &storage.Redundancy{Keep: 3},
			})
		}
		encoded := 0
		for _, it := range s.scan(t, s.Config().Tables.Snapshot) {
			if payload, ok := it[s.either("payload", "s")].(*types.AttributeValueMemberB); ok {
				assert.True(t, bytes.HasPrefix(payload.Value, []byte("a@snapshot of")), "%s", payload.Value)
				encoded++
			}
		}
		assert.Equal(t, 4, encoded, "the latest and three redundant ones")

		head := mustHead(t, s, user("1"))
		assert.Equal(t, &journal.Snapshot{Number: 3, Payload: []byte("state 3"), Schema: 7}, head.Snapshot)
		for n := uint64(1); n <= 3; n++ {
			before, err := s.SnapshotBefore(t.Context(), head, n)
			require.NoError(t, err)
			assert.Equal(t, &journal.Snapshot{Number: n, Payload: fmt.Append(nil, "state ", n), Schema: 7}, before)
		}

		_, err := s.through(t, s.client, encodings()).Head(t.Context(), user("1"))
		require.ErrorAs(t, err, new(*journal.EncodingError))
		version, err := s.through(t, s.client, encodings()).Version(t.Context(), user("1"))
		require.NoError(t, err)
		assert.EqualValues(t, 3, version)

		require.NoError(t, s.through(t, s.client, encodings()).Delete(t.Context(), user("1"), 3, journal.RemoveOptions{}), "which needs no key")
		assert.NotContains(t, s.get(t, s.Config().Tables.Snapshot, s.keyOf(user("1"), 0)), s.either("encoding", "x"))
	})
}
