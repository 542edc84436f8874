package journal_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// frameMagic is how compressed values begin.
var frameMagic = []byte{0x28, 0xB5, 0x2F, 0xFD}

// packedStore returns a journal whose tables have a format version. Everything but the tables is
// the same for each call.
func packedStore(t *testing.T, format int64) (store, *dynamotest.DB, *journal.Journal) {
	t.Helper()
	db := dynamotest.New(t)
	db.Clock().Set(time.UnixMilli(1_700_000_000_000))
	db.Clock().Freeze()
	var ids atomic.Int64
	config := journal.Config{Layout: journal.Packed, Shards: 2, Now: db.Clock().Now, RetryBudget: time.Minute, NewID: func() string {
		return uuid.NewSHA1(uuid.Nil, fmt.Append(nil, ids.Add(1))).String()
	}}
	require.NoError(t, journal.Create(t.Context(), db.Client(), config))
	s := store{client: db.Client()}
	descriptor := item{"pkey": text("millrace"), "skey": number(0)}
	assert.Equal(t, number(2), s.get(t, "journal", descriptor)["millrace_format"])
	s.change(t, "journal", descriptor, item{"millrace_format": number(format)})
	require.NoError(t, journal.Create(t.Context(), db.Client(), config), "the tables exist")
	j := testjournal.Open(t, s.client, config)
	s.Engine = j.Internal()
	return s, db, j
}

// compressedValues returns how many items have compressed events, and how many a compressed state.
func (s store) compressedValues(t *testing.T) (events, states int) {
	t.Helper()
	for _, it := range s.scan(t, s.Config().Tables.Journal) {
		for _, name := range []string{"e", "E"} {
			if b, ok := it[name].(*types.AttributeValueMemberB); ok && bytes.HasPrefix(b.Value, frameMagic) {
				events++
			}
		}
	}
	for _, it := range s.scan(t, s.Config().Tables.Snapshot) {
		if assert.ObjectsAreEqual(text("+zstd"), it["x"]) {
			states++
			assert.True(t, bytes.HasPrefix(it["s"].(*types.AttributeValueMemberB).Value, frameMagic))
		}
	}
	return events, states
}

// anyPayload returns a payload that compresses well, a little, or not at all.
func anyPayload(r *rand.Rand) []byte {
	size := r.IntN(1200)
	switch r.IntN(12) {
	case 0:
		size = r.IntN(60_000)
	case 1:
		size = 0
	}
	switch payload := noise(r.IntN(1000), size); r.IntN(4) {
	case 0:
		return payload
	case 1:
		return make([]byte, size)
	case 2:
		return fmt.Appendf(nil, `{"members":%s}`, bytes.Repeat([]byte(`{"id":"01H42KBHCWA8NE32M49YH544H1","role":"Admin"},`), size/52))
	default:
		return append(payload[:size/2], make([]byte, size/2)...)
	}
}

// writeAnything writes the same commits for the same seed.
func (s store) writeAnything(t *testing.T, db *dynamotest.DB, seed uint64) map[aggregate.ID]uint64 {
	t.Helper()
	r, versions := rand.New(rand.NewPCG(seed, 0)), map[aggregate.ID]uint64{}
	for n := range 120 {
		db.Clock().Advance(time.Duration(r.IntN(3)) * time.Millisecond)
		id := user(fmt.Sprint(r.IntN(9)))
		c := storage.Commit{Aggregate: id, Expected: versions[id], Proven: true}
		for range 1 + r.IntN(4) {
			c.Events = append(c.Events, storage.Event{Type: "any", Payload: anyPayload(r), Metadata: aggregate.Metadata{"n": fmt.Sprint(n)}})
		}
		if r.IntN(10) == 0 {
			c.Events[0].Encoding = "foreign"
		}
		if r.IntN(30) == 0 { // several items
			for i := range 10 {
				c.Events = append(c.Events, storage.Event{Type: "large", Payload: append(noise(i, 50_000), make([]byte, 50_000)...)})
			}
		}
		if r.IntN(2) == 0 {
			c.CommandID = fmt.Sprint("command ", n)
		}
		if r.IntN(3) == 0 {
			c.Snapshot = &journal.Snapshot{Number: versions[id] + uint64(len(c.Events)), Payload: anyPayload(r)}
			if r.IntN(3) == 0 {
				c.Snapshot.Encoding = "foreign"
			}
			if r.IntN(2) == 0 {
				c.Redundancy = &storage.Redundancy{Keep: 2}
			}
		}
		receipt := mustAppend(t, s, c)
		require.NoError(t, receipt.SnapshotError)
		versions[id] = receipt.Version
	}
	return versions
}

// everything returns all that a journal returns about its aggregates.
func (s store) everything(t *testing.T) (all []string) {
	t.Helper()
	note := func(v any, err error) {
		encoded, jsonErr := json.Marshal(v)
		require.NoError(t, jsonErr)
		all = append(all, fmt.Sprintf("%s %v", encoded, err))
	}
	for n := range 9 {
		id := user(fmt.Sprint(n))
		head, err := s.Head(t.Context(), id)
		note(head, err)
		for r, err := range s.Events(t.Context(), id, max(1, head.TruncatedBefore), head.Version) {
			note(r, err)
		}
		loaded, err := s.Load(t.Context(), id, func(head journal.Head, err error) uint64 {
			note(head, err)
			if head.Snapshot == nil {
				return 0
			}
			return head.Snapshot.Number
		}, func(r *journal.Record) error {
			note(r, nil)
			return nil
		})
		note(loaded.Version, err)
	}
	var tailed []string
	for _, records := range [][]*journal.Record{s.tailRecords(t), s.newestRecords(t)} {
		for _, r := range records {
			encoded, err := json.Marshal(r)
			require.NoError(t, err)
			tailed = append(tailed, string(encoded))
		}
	}
	return append(all, tailed...)
}

func (s store) tailRecords(t *testing.T) []*journal.Record {
	t.Helper()
	records, errs := topicTail(t, s.Engine, time.Time{})
	require.Empty(t, errs)
	return records
}

func (s store) newestRecords(t *testing.T) (records []*journal.Record) {
	t.Helper()
	for r, err := range s.Newest(t.Context(), "user-account", 1000) {
		require.NoError(t, err)
		records = append(records, r)
	}
	return records
}

// Tables of both formats return the same after the same calls.
func TestPackedCompressedTablesReturnWhatPlainOnesDo(t *testing.T) {
	t.Parallel()
	for seed := range testdb.Seeds(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			plain, plainDB, plainJournal := packedStore(t, 1)
			compressed, compressedDB, compressedJournal := packedStore(t, 2)
			plain = store{Engine: plain.Raw(), client: plain.client}
			compressed = store{Engine: compressed.Raw(), client: compressed.client}
			versions := plain.writeAnything(t, plainDB, seed)
			require.Equal(t, versions, compressed.writeAnything(t, compressedDB, seed))
			require.Equal(t, plain.everything(t), compressed.everything(t))
			events, states := plain.compressedValues(t)
			require.Zero(t, events+states)
			events, states = compressed.compressedValues(t)
			require.Greater(t, events, 30)
			require.Greater(t, states, 1)

			for n, id := range slices.SortedFunc(keysOf(versions), func(a, b aggregate.ID) int { return cmp.Compare(a.Value, b.Value) }) {
				for _, s := range []store{plain, compressed} {
					switch head := mustHead(t, s, id); {
					case n == 8:
						require.NoError(t, s.Delete(t.Context(), id, head.Version, journal.RemoveOptions{}))
					case head.Snapshot != nil:
						require.NoError(t, s.Truncate(t.Context(), id, head.Snapshot.Number, journal.RemoveOptions{}))
					}
				}
			}
			want := plain.everything(t)
			require.Equal(t, want, compressed.everything(t))

			// An archive does not depend on the format.
			var archives [2]bytes.Buffer
			for i, j := range []*journal.Journal{plainJournal, compressedJournal} {
				_, err := archive.Export(t.Context(), j, &archives[i], archive.ExportOptions{Concurrency: 1})
				require.NoError(t, err)
			}
			// The first line has the time of the export.
			_, ofPlain, _ := strings.Cut(archives[0].String(), "\n")
			_, ofCompressed, _ := strings.Cut(archives[1].String(), "\n")
			require.Equal(t, ofPlain, ofCompressed)
			for _, format := range []int64{1, 2} {
				s, _, j := packedStore(t, format)
				_, err := archive.Import(t.Context(), j, bytes.NewReader(archives[1].Bytes()), archive.ImportOptions{})
				require.NoError(t, err)
				report, err := archive.Compare(t.Context(), j, bytes.NewReader(archives[0].Bytes()), archive.VerifyOptions{})
				require.NoError(t, err)
				require.NoError(t, report.Err())
				events, states := s.compressedValues(t)
				assert.Equal(t, format == 2, events > 10, events)
				assert.Equal(t, format == 2, states > 0)
			}
		})
	}
}

func keysOf[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func TestPackedEventsWithEncodingsAreStoredAsTheyAre(t *testing.T) {
	t.Parallel()
	s, _, j := packedStore(t, 2)
	s.Engine = j.Internal().Raw()
	long := make([]byte, 3000)
	mustAppend(t, s, storage.Commit{Aggregate: user("1"), Events: []storage.Event{{Type: "a", Payload: long}, {Type: "b", Encoding: "gzip", Payload: long}}})
	receipt := mustAppend(t, s, storage.Commit{
		Aggregate: user("1"), Expected: 2, Events: []storage.Event{{Type: "a", Encoding: "gzip", Payload: long}},
		Snapshot: &journal.Snapshot{Number: 3, Payload: long, Encoding: "gzip"},
	})
	require.NoError(t, receipt.SnapshotError)
	r := restoration(user("2"), 0, old(user("2"), 1, 2))
	r.Records[0].Payload, r.Records[0].Encoding = long, "gzip"
	_, err := s.Restore(t.Context(), r)
	require.NoError(t, err)
	events, states := s.compressedValues(t)
	assert.Zero(t, events+states)
	assert.Equal(t, "gzip", mustHead(t, s, user("1")).Snapshot.Encoding)
}

func TestPackedLimitsHoldForTheSizeBeforeCompression(t *testing.T) {
	t.Parallel()
	s, _, _ := packedStore(t, 2)
	var tooLarge *journal.TooLargeError
	_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("1"), Events: []storage.Event{{Type: "a", Payload: make([]byte, storage.MaxItemBytes)}}})
	require.ErrorAs(t, err, &tooLarge)
	assert.Contains(t, tooLarge.What, "event 1")

	many := make([]storage.Event, 12)
	for i := range many {
		many[i] = storage.Event{Type: "a", Payload: make([]byte, 390_000)}
	}
	_, err = s.Append(t.Context(), storage.Commit{Aggregate: user("1"), Events: many})
	require.ErrorAs(t, err, &tooLarge)
	s.requireNothingWritten(t, user("1"))

	receipt := mustAppend(t, s, storage.Commit{
		Aggregate: user("1"), Events: many[:1], Snapshot: &journal.Snapshot{Number: 1, Payload: make([]byte, storage.MaxItemBytes)},
	})
	require.ErrorAs(t, receipt.SnapshotError, &tooLarge)
	assert.Equal(t, "the snapshot", tooLarge.What)

	r := restoration(user("2"), 0, old(user("2"), 1, 12))
	for _, record := range r.Records {
		record.Payload = make([]byte, 390_000)
	}
	_, err = s.Restore(t.Context(), r)
	require.ErrorAs(t, err, &tooLarge)
	assert.Equal(t, "the restoration", tooLarge.What)
}

// userAccount returns a payload like the sample of docs: an account with members.
func userAccount(members int) []byte {
	r := rand.New(rand.NewPCG(uint64(members), 0))
	id := func() string {
		text := []byte("01H42K")
		for len(text) < 26 {
			text = append(text, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[r.IntN(32)])
		}
		return string(text)
	}
	var ids, all []string
	for n := range members {
		member, account := id(), uuid.NewSHA1(uuid.Nil, []byte{byte(n)})
		ids = append(ids, fmt.Sprintf(`%q:%q`, id(), member))
		all = append(all, fmt.Sprintf(`%q:{"id":%q,"user_account_id":{"value":%q},"role":"Admin"}`, member, member, account))
	}
	return fmt.Appendf(nil, `{"type":"Created","id":%q,"seq_nr":1,"name":"test","members":{"members_ids_by_user_account_id":{%s},"members":{%s}},"occurred_at":"2023-06-29T03:32:37.404481Z"}`,
		id(), strings.Join(ids, ","), strings.Join(all, ","))
}

func TestPackedCompressionSavesUnits(t *testing.T) {
	t.Parallel()
	type units struct{ Write, Snapshot, Load, LoadSnapshot float64 }
	cost := func(format int64, event, state []byte) (u units) {
		s, _, _ := packedStore(t, format)
		s.write(t, user("1"), 1, 1) // the first commit costs one unit more
		ctx, sum := journal.CountUnits(t.Context())
		_, err := s.Append(ctx, storage.Commit{
			Aggregate: user("1"), Expected: 1, Proven: true, Events: []storage.Event{{Type: "created", Payload: event}},
		})
		require.NoError(t, err)
		u.Write = sum.Write()
		ctx, sum = journal.CountUnits(t.Context())
		_, err = s.load(ctx, user("1"))
		require.NoError(t, err)
		u.Load = sum.Read()
		ctx, sum = journal.CountUnits(t.Context())
		_, err = s.Append(ctx, storage.Commit{
			Aggregate: user("1"), Expected: 2, Proven: true, Events: []storage.Event{{Type: "x"}}, Snapshot: &journal.Snapshot{Number: 3, Payload: state},
		})
		require.NoError(t, err)
		u.Snapshot = sum.Write() - 2 // without the commit
		ctx, sum = journal.CountUnits(t.Context())
		_, err = s.load(ctx, user("1"))
		require.NoError(t, err)
		u.LoadSnapshot = sum.Read()
		return u
	}
	event, state := userAccount(4), userAccount(47)
	require.InDelta(t, 1100, len(event), 100)
	require.InDelta(t, 10_000, len(state), 300)
	assert.Equal(t, units{Write: 3, Snapshot: 10, Load: 2, LoadSnapshot: 4}, cost(1, event, state))
	assert.Equal(t, units{Write: 2, Snapshot: 3, Load: 2, LoadSnapshot: 2}, cost(2, event, state))
}

// The page of the index has up to 1 MB, of thousands of entries that compress very well.
func TestPackedATailPageHasLittleMoreThan4MBBeforeCompression(t *testing.T) {
	t.Parallel()
	s, _, _ := packedStore(t, 2)
	const commits = 10_000
	id := user("1")
	for n := range commits {
		mustAppend(t, s, storage.Commit{Aggregate: id, Expected: uint64(n), Proven: true, Events: []storage.Event{{Type: "a", Payload: make([]byte, 850)}}})
	}
	largest, seen := 0, map[uint64]bool{}
	for q := s.tailOf(id); ; {
		page := tail(t, s.Engine, q)
		size := 0
		for _, r := range page.Records {
			require.False(t, seen[r.Number], r.Number)
			seen[r.Number] = true
			size += len(r.Payload)
		}
		largest = max(largest, size)
		if q.After = page.Next; !page.More {
			break
		}
	}
	assert.Len(t, seen, commits)
	assert.Greater(t, largest, 2<<20)
	assert.LessOrEqual(t, largest, 4<<20)
}
