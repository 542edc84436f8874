package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestABlockedAggregateIsShownWithTheAttemptThatFailed(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		store, at := checkpoint.New(j), time.UnixMilli(1_700_000_000_000)
		key := checkpoint.Key{Group: "mails", Topic: "cart"}
		_, err := store.ChangeMembership(t.Context(), key, checkpoint.Membership{}, checkpoint.NewMembership(4, time.Time{}))
		require.NoError(t, err)
		r := repositoryOf(t, j, repository.Config{})
		for id, b := range map[string]checkpoint.Behind{
			"failing": {Failure: &checkpoint.Failure{Number: 1, At: at, Reason: "<b>the card</b> was declined, 3 times"}},
			"slow":    {},
			"parked":  {Parked: &checkpoint.Failure{Number: 1, At: at, Reason: "broken, once"}},
		} {
			save(t.Context(), t, r, id, opened{"ada"})
			b.Aggregate, b.Head = aggregate.ID{Type: "cart", Value: id}, 1
			require.NoError(t, store.ListBehind(t.Context(), checkpoint.Group{Name: "mails"}, checkpoint.Revision{Epoch: 1}, b))
		}
		c := newConsole(t, console.Config{Journal: j})

		type row struct {
			ID     string
			Parked bool
			Since  *time.Time
			Reason string
		}
		shown := read[struct{ Aggregates []row }](t, c, "behind?name=mails&topic=cart")
		at = at.UTC()
		for i := range shown.Aggregates {
			if since := shown.Aggregates[i].Since; since != nil {
				*since = since.UTC()
			}
		}
		assert.ElementsMatch(t, []row{
			{"failing", false, &at, "<b>the card</b> was declined, 3 times"}, {"slow", false, nil, ""}, {"parked", true, &at, "broken, once"},
		}, shown.Aggregates)

		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/behind?name=mails&topic=cart", http.NoBody))
		require.Equal(t, http.StatusOK, w.Code)
		page := w.Body.String()
		assert.Contains(t, page, "&lt;b&gt;the card&lt;/b&gt; was declined, 3 times")
		assert.Equal(t, 1, strings.Count(page, " · failed "))
		assert.Equal(t, 1, strings.Count(page, " · parked "))
		assert.Equal(t, 1, strings.Count(page, "No attempt has failed. Its handler takes long"))
	})
}
