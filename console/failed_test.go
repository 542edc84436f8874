package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// subscribed adds groups on carts that have no members.
func subscribed(t *testing.T, j *journal.Journal, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := checkpoint.New(j).ChangeMembership(
			t.Context(), checkpoint.Key{Group: name, Topic: "cart"}, checkpoint.Membership{}, checkpoint.NewMembership(j.Shards(), time.Time{}))
		require.NoError(t, err)
	}
}

type listed struct {
	Groups []struct {
		Group string
		Read  bool
	}
	Failed []string
}

func TestAGroupThatCannotBeReadHidesNoOthers(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	subscribed(t, j, "good", "bad")
	table := j.Config().Tables.Checkpoint
	_, err := j.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: "bad/cart"}, "skey": &types.AttributeValueMemberS{Value: "shards"},
	}})
	require.NoError(t, err)
	c := newConsole(t, console.Config{Journal: j})
	for _, path := range []string{"", "groups"} {
		v := read[listed](t, c, path)
		require.Len(t, v.Groups, 1, path)
		assert.Equal(t, "good", v.Groups[0].Group)
		require.Len(t, v.Failed, 1, path)
		assert.Contains(t, v.Failed[0], "bad")
		assert.Contains(t, htmlOf(t, c, path), "Not everything could be read")
	}
	for _, path := range []string{"topic?name=cart", "tail", "aggregates", "processes"} {
		get(t, c, path)
	}
}

func TestAGroupThatWorksInBurstsMissesNoMember(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	subscribed(t, j, "mails", "forgotten")
	_, err := checkpoint.New(j).ModifyMembership(t.Context(), checkpoint.Key{Group: "mails", Topic: "cart"}, func(r checkpoint.Membership) (checkpoint.Membership, error) {
		r.Burst = time.UnixMilli(1_700_000_000_000)
		return r, nil
	})
	require.NoError(t, err)
	c := newConsole(t, console.Config{Journal: j})
	v := read[struct {
		State string
		Last  time.Time `json:"last_burst"`
	}](t, c, "group?name=mails&topic=cart")
	assert.Equal(t, "in bursts", v.State)
	assert.EqualValues(t, 1_700_000_000, v.Last.Unix())
	assert.Contains(t, htmlOf(t, c, "group?name=mails&topic=cart"), "Last burst")
	concerns := htmlOf(t, c, "")
	assert.Contains(t, concerns, "forgotten on cart: no member handles its events")
	assert.NotContains(t, concerns, "mails on cart: no member handles its events")
}

// ofGroup matches the reads of the positions of a group.
func ofGroup(name string) dynamotest.When {
	return dynamotest.Matching(func(_ string, input any) bool {
		query, isQuery := input.(*dynamodb.QueryInput)
		if !isQuery {
			return false
		}
		for _, v := range query.ExpressionAttributeValues {
			if s, isText := v.(*types.AttributeValueMemberS); isText && strings.HasPrefix(s.Value, name+"/") {
				return true
			}
		}
		return false
	})
}

func TestAGroupThatIsThrottledHidesNoOthers(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Classic, Shards: 1})
		subscribed(t, j, "hot", "mails")
		save(t.Context(), t, repositoryOf(t, j, repository.Config{}), "1", opened{"ada"})
		c := newConsole(t, console.Config{Journal: j, Refresh: -1})
		db.Inject(dynamotest.Throttle(), ofGroup("hot"))
		v := read[listed](t, c, "groups")
		require.Len(t, v.Groups, 2)
		assert.False(t, v.Groups[0].Read)
		assert.True(t, v.Groups[1].Read)
		require.Len(t, v.Failed, 1)
		assert.Contains(t, v.Failed[0], "group hot on cart")
		db.Inject(dynamotest.Throttle())
		for _, path := range []string{"", "groups"} {
			_, status := ask(t, c, path)
			assert.Equal(t, http.StatusServiceUnavailable, status, "nothing can be read")
		}
	})
}

func TestAnOverviewThatReadLittleDoesNotSayThatAllIsWell(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	for i := range 3 { // with members, so that only a failed read could be a concern
		membership := checkpoint.NewMembership(j.Shards(), time.Time{})
		membership.Members = map[uint64]checkpoint.Member{1: {Name: "host", Lease: time.Hour}}
		_, err := checkpoint.New(j).ChangeMembership(t.Context(), checkpoint.Key{Group: fmt.Sprint("g", i), Topic: "cart"}, checkpoint.Membership{}, membership)
		require.NoError(t, err)
	}
	c := newConsole(t, console.Config{Journal: j, PageUnits: 1})
	html := htmlOf(t, c, "")
	assert.Contains(t, html, "Not read:")
	assert.NotContains(t, html, "No group is stopped")
	assert.NotContains(t, html, `data-label="Blocked" class="n">0`, "it is not known")
}

func TestATimeBeforeWhatWasTruncatedIsNoFailureOfTheServer(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		r := repositoryOf(t, j, repository.Config{Snapshots: repository.Every(1)})
		save(t.Context(), t, r, "1", opened{"ada"}, opened{"ada"}, opened{"ada"})
		require.NoError(t, j.Truncate(t.Context(), aggregate.ID{Type: "cart", Value: "1"}, 3, journal.RemoveOptions{}))
		_, status := ask(t, newConsole(t, console.Config{Journal: j}), "aggregate?type=cart&id=1&at="+url.QueryEscape("2020-01-01T00:00:00Z"))
		assert.Equal(t, http.StatusGone, status)
	})
}

func TestAPrefixMayBeStrippedWithItsSlash(t *testing.T) {
	t.Parallel()
	c := newConsole(t, console.Config{Journal: newJournal(t, journal.Config{})})
	for prefix, want := range map[string]int{"/ops/": http.StatusOK, "/ops": http.StatusOK} {
		w := httptest.NewRecorder()
		http.StripPrefix(prefix, c).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ops/", http.NoBody))
		assert.Equal(t, want, w.Code, prefix)
	}
	w := httptest.NewRecorder()
	http.StripPrefix("/ops", c).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ops", http.NoBody))
	assert.Equal(t, "./ops/", w.Header().Get("Location"))
}
