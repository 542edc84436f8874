package journal_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

func TestALimitYieldsTheFirstHeadsOverAnyPages(t *testing.T) {
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
					for _, limit := range []int{1, 2, len(all) - 1, len(all), len(all) + 1, math.MaxInt} {
						q.Limit = limit
						assert.Equal(t, all[:min(limit, len(all))], s.heads(t, q), "limit %d", limit)
					}
				}
			}
		})
	}
}

func TestHeadsAreListedPageByPage(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.population(t)
		for _, q := range []journal.HeadsQuery{{}, {AggregateType: "user-account"}} {
			want := s.heads(t, q)
			var got []journal.Head
			for q.Limit = 4; ; {
				page := s.heads(t, q)
				got = append(got, page...)
				if len(page) < q.Limit {
					break
				}
				q.After = page[len(page)-1].Aggregate
			}
			assert.Equal(t, want, got)
		}
	})
}

func TestHeadsThatCannotBeReadDoNotCountForTheLimit(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for n := range 6 {
			s.write(t, user(fmt.Sprint(n)), 1, 1)
		}
		for _, q := range []journal.HeadsQuery{{}, {AggregateType: "user-account"}} {
			want := s.heads(t, q)
			bad := want[0].Aggregate
			c := s.Config()
			table, number, attribute := c.Tables.Snapshot, 0, c.Classic.Attributes.Version
			if s.isPacked() {
				table, number, attribute = c.Tables.Journal, 1, "c"
			}
			it := s.get(t, table, s.keyOf(bad, number))
			s.change(t, table, s.keyOf(bad, number), item{attribute: binary("x")})
			told := 0
			q.Limit, q.Corrupt = 3, func(*journal.CorruptItemError) { told++ }

			assert.Equal(t, want[1:4], s.heads(t, q))

			assert.Equal(t, 1, told)
			s.put(t, table, it)
		}
	})
}

func TestANegativeLimitIsRefused(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		var refused *journal.ConfigError
		for _, err := range s.Heads(t.Context(), journal.HeadsQuery{Limit: -1}) {
			require.ErrorAs(t, err, &refused)
		}
		require.NotNil(t, refused)
	})
}

func TestALimitedListCostsInProportionToTheLimit(t *testing.T) {
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		const aggregates, limit, state, redundant = 400, 50, 3_000, 2
		s, _ := inMemory(t, journal.Config{Layout: layout, Shards: 4})
		for n := range aggregates {
			c := storage.Commit{Aggregate: user(fmt.Sprint(n)), Events: events(1, 1)}
			if layout == journal.Classic { // rows that are read but not listed
				c.Snapshot = &journal.Snapshot{Number: 1, Payload: make([]byte, state)}
				c.Redundancy = &storage.Redundancy{Listed: []uint64{}, Keep: redundant}
			}
			mustAppend(t, s, c)
		}
		cost := func(q journal.HeadsQuery, want int) float64 {
			t.Helper()
			ctx, units := journal.CountUnits(t.Context())
			found := 0
			for _, err := range s.Heads(ctx, q) {
				require.NoError(t, err)
				found++
			}
			require.Equal(t, want, found)
			return units.Read()
		}
		for _, aggregateType := range []string{"", "user-account"} {
			all := cost(journal.HeadsQuery{AggregateType: aggregateType}, aggregates)
			some := cost(journal.HeadsQuery{AggregateType: aggregateType, Limit: limit}, limit)
			one := cost(journal.HeadsQuery{AggregateType: aggregateType, Limit: 1}, 1)
			t.Logf("%q: %v of all, %v of %d, %v of one", aggregateType, all, some, limit, one)
			assert.Less(t, some, 2*all*limit/aggregates)
			assert.LessOrEqual(t, one, 4.0)
			if layout == journal.Packed {
				assert.LessOrEqual(t, some, limit+2.0, "the last commit of each, and a page of the index")
			}
		}
	})
}
