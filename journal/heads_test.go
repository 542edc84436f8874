package journal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// heads collects the heads that Heads yields.
func (s store) heads(t *testing.T, q journal.HeadsQuery) []journal.Head {
	t.Helper()
	var heads []journal.Head
	for head, err := range s.Heads(t.Context(), q) {
		require.NoError(t, err)
		heads = append(heads, head)
	}
	return heads
}

// population writes aggregates of several types, with snapshots, redundant ones and tombstones. It
// returns their heads as Heads yields them.
func (s store) population(t *testing.T) map[aggregate.ID]journal.Head {
	t.Helper()
	want := map[aggregate.ID]journal.Head{}
	for _, aggregateType := range []string{"user", "user-account", "user-account-1", "order"} {
		for n := range 6 {
			id := aggregate.ID{Type: aggregateType, Value: fmt.Sprintf("account-%d", n)}
			receipt := mustAppend(t, s, storage.Commit{
				Aggregate: id, Events: events(1, n+1), CommandID: "c", Snapshot: &journal.Snapshot{Number: uint64(n + 1), Payload: []byte("state")},
				Redundancy: &storage.Redundancy{Listed: []uint64{}, Keep: 1},
			})
			head := journal.Head{Aggregate: id, Version: receipt.Version, Redundant: receipt.Redundant}
			if n == 3 {
				require.NoError(t, s.Delete(t.Context(), id, receipt.Version, journal.RemoveOptions{}))
				head.Redundant, head.TruncatedBefore, head.DeletedAt = nil, receipt.Version+1, s.Config().Now().UTC()
			}
			want[id] = head
		}
	}
	return want
}

func byAggregate(t *testing.T, heads []journal.Head) map[aggregate.ID]journal.Head {
	t.Helper()
	found := map[aggregate.ID]journal.Head{}
	for _, head := range heads {
		require.NotContains(t, found, head.Aggregate, "each once")
		found[head.Aggregate] = head
	}
	return found
}

func TestHeadsGivesEveryAggregateOnceWithoutItsSnapshot(t *testing.T) {
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		s := setup(t, journal.Config{Layout: layout})
		want := s.population(t)
		for id, head := range want {
			if s.isPacked() { // it would have to read the snapshots
				head.Redundant = nil
				want[id] = head
			}
		}

		assert.Equal(t, want, byAggregate(t, s.heads(t, journal.HeadsQuery{})))
		for _, aggregateType := range []string{"user", "user-account", "user-account-1", "order", "nobody"} {
			ofType := map[aggregate.ID]journal.Head{}
			for id, head := range want {
				if id.Type == aggregateType {
					ofType[id] = head
				}
			}
			assert.Equal(t, ofType, byAggregate(t, s.heads(t, journal.HeadsQuery{AggregateType: aggregateType})), aggregateType)
		}
	})
}

func TestHeadsGoesOnBehindAnyHeadAndOverAnyPages(t *testing.T) {
	for name, config := range configs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for pages := range 3 {
				s, db := inMemory(t, config)
				s.population(t)
				if pages > 0 {
					db.Inject(dynamotest.SmallPages(pages))
				}
				for _, q := range []journal.HeadsQuery{{}, {AggregateType: "user-account"}} {
					all := s.heads(t, q)
					require.NotEmpty(t, all)
					byAggregate(t, all)
					for i, head := range all {
						q.After = head.Aggregate
						rest := s.heads(t, q)
						require.Len(t, rest, len(all)-i-1)
						require.Equal(t, append([]journal.Head{}, all[i+1:]...), append([]journal.Head{}, rest...), "behind %s", head.Aggregate)
					}
				}
			}
		})
	}
}

func TestHeadsEndsWhenItsReaderDoes(t *testing.T) {
	t.Parallel()
	for _, q := range []journal.HeadsQuery{{}, {AggregateType: "user"}} {
		s, db := inMemory(t, journal.Config{})
		s.population(t)
		db.Inject(dynamotest.SmallPages(1))
		calls := db.Record()
		for _, err := range s.Heads(t.Context(), q) {
			require.NoError(t, err)
			break
		}
		before := len(calls.Calls())
		assert.Positive(t, before)
		last := calls.Calls()[before-1]
		assert.Equal(t, 1, last.Items, "the page with the head was the last to be read")
	}
}

func TestHeadsEndsWithACorruptHeadAndCanGoOnBehindIt(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		for _, q := range []journal.HeadsQuery{{}, {AggregateType: "user-account"}} {
			want := s.heads(t, q)
			if want == nil {
				for n := range 5 {
					s.write(t, user(fmt.Sprint(n)), 1, 1)
				}
				want = s.heads(t, q)
			}
			c := s.Config()
			bad := want[2].Aggregate
			s.change(t, c.Tables.Snapshot, s.keyOf(bad, 0), item{c.Classic.Attributes.Version: text("1")})

			var got []journal.Head
			for head, err := range s.Heads(t.Context(), q) {
				if err == nil {
					got = append(got, head)
					continue
				}
				var corrupt *journal.CorruptItemError
				require.ErrorAs(t, err, &corrupt)
				require.Equal(t, bad, corrupt.Aggregate)
				require.Equal(t, bad.String()+"-0", corrupt.SortKey)
				q.After = corrupt.Aggregate
			}
			got = append(got, s.heads(t, q)...)

			assert.Equal(t, append(append([]journal.Head{}, want[:2]...), want[3:]...), got)
			s.change(t, c.Tables.Snapshot, s.keyOf(bad, 0), item{c.Classic.Attributes.Version: number(1)})
		}
	})
}

func TestAHeadThatNamesNoAggregateIsCorrupt(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c := s.Config()
		it := s.key("user-account-1", "what")
		it[c.Classic.Attributes.SequenceNumber] = number(0)
		s.put(t, c.Tables.Snapshot, it)
		for _, q := range []journal.HeadsQuery{{}, {AggregateType: "user-account"}} {
			var corrupt *journal.CorruptItemError
			for _, err := range s.Heads(t.Context(), q) {
				require.ErrorAs(t, err, &corrupt)
			}
			require.NotNil(t, corrupt)
			assert.Equal(t, "what", corrupt.SortKey)
		}
	})
}

func TestAHeadThatIsNotInItsPlaceIsToldOf(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c := s.Config()
		s.write(t, user("1"), 1, 1)
		s.write(t, user("2"), 1, 1)
		shard := storage.ShardKey(user("1").Type, s.Shard(user("1")))
		for _, it := range []item{s.key(shard, "else"), s.key(storage.ShardKey(user("1").Type, s.Shard(user("1"))^1), user("1").String()+"-0")} {
			it[c.Classic.Attributes.AggregateID], it[c.Classic.Attributes.SequenceNumber] = text(user("1").String()), number(0)
			it[c.Classic.Attributes.Version] = number(1)
			s.put(t, c.Tables.Snapshot, it)
		}
		for _, q := range []journal.HeadsQuery{{}, {AggregateType: user("1").Type}} {
			var told []*journal.CorruptItemError
			q.Corrupt = func(err *journal.CorruptItemError) { told = append(told, err) }
			assert.Len(t, s.heads(t, q), 2)
			require.Len(t, told, 2)
			for _, err := range told {
				assert.True(t, err.Misplaced)
				assert.Equal(t, user("1"), err.Aggregate)
				assert.ErrorContains(t, err, fmt.Sprintf("has to be, %q / %q", shard, user("1").String()+"-0"))
			}
		}
	})
}

func TestHeadsRefusesAnAfterThatItCannotGoOnBehind(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for _, q := range []journal.HeadsQuery{
			{AggregateType: "order", After: user("1")}, {After: user("")}, {After: aggregate.ID{Value: "1"}},
		} {
			n := 0
			for _, err := range s.Heads(t.Context(), q) {
				n++
				require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
			}
			assert.Equal(t, 1, n)
		}
	})
}
