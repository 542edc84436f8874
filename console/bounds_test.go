package console_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestAListOfLargeAggregatesEndsWhenItHasTakenItsUnits(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		r := repositoryOf(t, j, repository.Config{Snapshots: repository.Every(1)})
		for i := range 40 {
			save(t.Context(), t, r, fmt.Sprint(i), opened{strings.Repeat("x", 200<<10)})
		}
		c := newConsole(t, console.Config{Journal: j, PageUnits: 100})
		seen, after := map[string]bool{}, ""
		for begun := false; !begun || after != ""; begun = true {
			page := get(t, c, "aggregates?type=cart&after="+after)
			assert.LessOrEqual(t, page.ReadUnits, 100.0+16*52, "it completes the current read")
			var list struct {
				Aggregates []struct{ ID string }
				Next       string
			}
			require.NoError(t, json.Unmarshal(page.Data, &list))
			require.NotEmpty(t, list.Aggregates)
			for _, a := range list.Aggregates {
				require.False(t, seen[a.ID], a.ID)
				seen[a.ID] = true
			}
			after = list.Next
		}
		assert.Len(t, seen, 40)
	})
}

// hold lists aggregates as parked, and records their events as skipped.
func hold(t *testing.T, j *journal.Journal, n int) {
	t.Helper()
	store, r := checkpoint.New(j), repositoryOf(t, j, repository.Config{})
	_, err := store.ChangeMembership(t.Context(), checkpoint.Key{Group: "mails", Topic: "cart"}, checkpoint.Membership{}, checkpoint.NewMembership(4, time.Time{}))
	require.NoError(t, err)
	for i := range n {
		id := aggregate.ID{Type: "cart", Value: fmt.Sprint(i)}
		save(t.Context(), t, r, id.Value, opened{"ada"}, opened{"ada"})
		require.NoError(t, groups.New(j).Skip(t.Context(), "mails", id, 1))
		g, err := groups.Of(j, "mails", "cart").Status(t.Context())
		require.NoError(t, err)
		epoch := g.Shards[j.Internal().Shard(id)].Epoch
		require.NoError(t, store.ListBehind(t.Context(), checkpoint.Group{Name: "mails"}, checkpoint.Revision{Epoch: epoch, Number: 1}, checkpoint.Behind{
			Aggregate: id, Head: 2, Parked: &checkpoint.Failure{Number: 2, At: time.Now(), Reason: "broken"},
		}))
	}
}

func TestListsOfAGroupGoOnWithAPageThatMayTakeLittle(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		hold(t, j, 10)
		c := newConsole(t, console.Config{Journal: j, PageUnits: 1})
		for _, list := range []string{"behind", "skipped"} {
			seen, after := map[string]bool{}, ""
			for begun := false; !begun || after != ""; begun = true {
				page := read[struct {
					Aggregates, Events []struct{ ID string }
					Next               string
				}](t, c, list+"?name=mails&topic=cart&after="+after)
				rows := slices.Concat(page.Aggregates, page.Events)
				require.NotEmpty(t, rows, list)
				for _, row := range rows {
					require.False(t, seen[row.ID], row.ID)
					seen[row.ID] = true
				}
				after = page.Next
			}
			assert.Len(t, seen, 10, list)
		}
	})
}

func TestTopicsAreFoundAlthoughGroupsHaveTakenTheUnitsOfThePage(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		hold(t, j, 40)
		testjournal.Append(t, j, storage.Commit{
			Aggregate: aggregate.ID{Type: "card", Value: "1"}, Events: []storage.Event{{ID: "1", Type: "card.issued", Payload: []byte("{}")}},
		})
		c := newConsole(t, console.Config{Journal: j, PageUnits: 60})
		overview := read[struct {
			Topics []struct{ Topic string }
			Left   []string `json:"left_out"`
		}](t, c, "?find=1")
		assert.NotEmpty(t, overview.Left, "the page has reached its limit")
		assert.Contains(t, overview.Topics, struct{ Topic string }{"card"})
	})
}

// setTimeout writes a timeout, like a process manager.
func setTimeout(t *testing.T, j *journal.Journal, processType, id, name, token string, at, next time.Time) {
	t.Helper()
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	millis := func(t time.Time) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: fmt.Sprint(t.UnixMilli())}
	}
	table := process.DefaultTable
	_, err := j.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"pkey": text(processType + "\t" + id), "skey": text("timeout/" + name), "queue": text(processType + "-0"), "token": text(token),
		"at": millis(at), "due": millis(next), "filler": text(strings.Repeat("x", 4000)),
	}})
	require.NoError(t, err)
}

func TestListsOfProcessesEndWhenTheyHaveTakenTheirUnits(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	require.NoError(t, process.CreateTable(t.Context(), j.Client(), ""))
	for i := range 1200 { // 4.8 MB; a scan reads 1 MB at a time
		setTimeout(t, j, "checkout", fmt.Sprint(i%3), fmt.Sprint(i), "1", time.Now(), time.Now())
	}
	c := newConsole(t, console.Config{Journal: j, PageUnits: 100})
	for _, path := range []string{"processes?show=pending&type=other", "processes?show=open", "process?type=checkout&id=1"} {
		page := get(t, c, path)
		assert.LessOrEqual(t, page.ReadUnits, 100.0+257, path)
		var list struct{ More bool }
		require.NoError(t, json.Unmarshal(page.Data, &list))
		assert.True(t, list.More, path)
		assert.NotContains(t, htmlOf(t, c, path), "Nothing is pending")
	}
}

func TestAListOfWhatIsOverdueSaysThatItIsNotComplete(t *testing.T) {
	t.Parallel()
	now := time.Now()
	j := newJournal(t, journal.Config{Now: func() time.Time { return now }})
	require.NoError(t, process.CreateTable(t.Context(), j.Client(), ""))
	for i := range 150 {
		setTimeout(t, j, "checkout", "soon", fmt.Sprint(i), "1", now.Add(20*time.Second), now.Add(20*time.Second))
	}
	setTimeout(t, j, "checkout", "late", "failing", "1", now.Add(-time.Hour), now.Add(30*time.Second))
	c := newConsole(t, console.Config{Journal: j})
	assert.True(t, read[struct{ More bool }](t, c, "processes?type=checkout").More)
	assert.NotContains(t, htmlOf(t, c, "processes?type=checkout"), "Nothing is overdue")

	subscribed(t, j, "checkout") // the overview finds the type by the name of its group
	assert.Contains(t, read[struct {
		LeftOut []string `json:"left_out"`
	}](t, c, "").LeftOut, "some timeouts of checkout (many are due)")
}
