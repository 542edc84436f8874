package console_test

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// many is the number of aggregates, and the number of events of one of them. The phase
// "many" of test/cmd/check sets 100,000.
var many = flag.Int("console.many", 5000, "aggregates of TestPagesOfManyAggregatesAndManyEventsTakeFewReadUnits, and events of one")

// atOnce is the number of aggregates or events of a commit. In the classic layout an aggregate
// takes two actions of a transaction.
const atOnce = 45

// fill writes many aggregates with one event, and one aggregate with many events.
func fill(t *testing.T, j *journal.Journal) {
	t.Helper()
	log := j.Internal()
	event := func(n int) storage.Event {
		return storage.Event{ID: fmt.Sprint(n), Type: "counted", Payload: []byte(fmt.Sprintf(`{"n":%d}`, n))}
	}
	for n := 0; n < *many; n += atOnce {
		var several storage.Joint
		var events []storage.Event
		for i := n; i < min(n+atOnce, *many); i++ {
			several.Parts = append(several.Parts, storage.Commit{Aggregate: aggregate.ID{Type: "small", Value: fmt.Sprint(i)}, Events: []storage.Event{event(i)}})
			events = append(events, event(i))
		}
		_, err := log.AppendJoint(t.Context(), several)
		require.NoError(t, err)
		_, err = log.Append(t.Context(), storage.Commit{Aggregate: aggregate.ID{Type: "large", Value: "1"}, Expected: uint64(n), Events: events})
		require.NoError(t, err)
	}
}

func TestPagesOfManyAggregatesAndManyEventsTakeFewReadUnits(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Shards: 4, Layout: layout})
		fill(t, j)
		c := newConsole(t, console.Config{Journal: j, Topics: []string{"large", "small"}})

		for path, most := range map[string]float64{
			"":                                      100,
			"?find=1":                               500 + 300, // stops within a page of a scan
			"topic?name=small":                      50,
			"aggregates?type=small":                 150,
			"aggregate?type=large&id=1":             50,
			"aggregate?type=large&id=1&to=50000":    50,
			"aggregate?type=large&id=1&from=7&to=7": 20,
			"aggregate?type=large&id=1&at=" + url.QueryEscape("2020-01-01T00:00:00Z"): 100,
			"tail?topic=small": 20,
		} {
			r := get(t, c, path)
			t.Logf("%-50s %6.1f units %4d requests", path, r.ReadUnits, r.Requests)
			assert.LessOrEqual(t, r.ReadUnits, most, "page %q", path)
		}

		seen, next := map[string]bool{}, ""
		for range 5 {
			list := get(t, c, "aggregates?type=small&after="+next)
			var data struct {
				Aggregates []struct{ ID string }
				Next       string
			}
			require.NoError(t, json.Unmarshal(list.Data, &data))
			require.Len(t, data.Aggregates, 50)
			for _, a := range data.Aggregates {
				require.False(t, seen[a.ID], "%s comes twice", a.ID)
				seen[a.ID] = true
			}
			require.NotEmpty(t, data.Next)
			next = data.Next
			assert.LessOrEqual(t, list.ReadUnits, 150.0)
		}
	})
}

func TestAPageOfLargeEventsEndsWhenItHasTakenItsUnits(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		noise := make([]byte, 225<<10)
		_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
		payload := fmt.Appendf(nil, "%q", base64.StdEncoding.EncodeToString(noise)) // 300 KB
		id := aggregate.ID{Type: "cart", Value: "1"}
		for n := range uint64(21) {
			testjournal.Append(t, j, storage.Commit{Aggregate: id, Expected: n, Events: []storage.Event{{ID: fmt.Sprint(n), Type: "cart.noted", Payload: payload}}})
		}
		c := newConsole(t, console.Config{Journal: j, PageUnits: 100})
		first := get(t, c, "aggregate?type=cart&id=1")
		assert.Less(t, first.ReadUnits, 100.0+2*256+80, "it ends with the page of 1 MB that is being read")
		v := read[timeline](t, c, "aggregate?type=cart&id=1")
		assert.Less(t, len(v.Events), 21)
		assert.NotEmpty(t, v.Failed)
		seen := v.To
		for v.Newer > 0 {
			v = read[timeline](t, c, fmt.Sprintf("aggregate?type=cart&id=1&from=%d&to=%d", seen+1, v.Newer))
			require.Equal(t, seen+1, v.From)
			require.Greater(t, v.To, seen)
			seen = v.To
		}
		assert.Equal(t, uint64(21), seen, "all events can be reached")
	})
}
