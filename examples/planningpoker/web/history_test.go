package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/planningpoker/history"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/examples/planningpoker/web"
	"github.com/millrace-dev/millrace/internal/testdb"
)

func (b *browser) history(query string) (h web.History) {
	b.t.Helper()
	got := b.do(http.MethodGet, "/rooms/"+roomID+"/history"+query, "")
	require.Equal(b.t, http.StatusOK, got.status, got.body)
	require.NoError(b.t, json.Unmarshal([]byte(got.body), &h))
	return h
}

func TestARoomShowsWhatWasEstimatedBefore(t *testing.T) {
	t.Parallel()
	s := serve(t, testdb.Client(t), service.Config{})
	ada, ben := visit(t, s.URL()), visit(t, s.URL())
	command := func(who *browser, name, body string) { who.post("/rooms/"+roomID+"/"+name, body) }
	ada.open(strings.Replace(opening, "{", `{"title": " Log in ",`, 1))
	assert.JSONEq(t, `{"rounds": []}`, ada.do(http.MethodGet, "/rooms/"+roomID+"/history", "").body)
	ada.join("Ada")
	ben.join("Ben")
	adasID, bensID := ada.room().You, ben.room().You
	assert.Equal(t, "Log in", ben.room().Title)

	command(ada, "pick", `{"card": "2"}`)
	assert.Empty(t, ben.history("").Rounds, "the round goes on")
	command(ben, "pick", `{"card": "3"}`)
	command(ben, "refresh", `{"round": 1, "title": "Log out"}`)
	assert.Equal(t, "Log out", ada.room().Title)
	command(ada, "pick", `{"card": "1"}`)
	command(ada, "refresh", `{"round": 2}`)
	assert.Empty(t, ada.room().Title)
	command(ben, "leave", `{}`)
	command(ada, "pick", `{"card": "3"}`)

	rounds := ben.history("").Rounds
	require.Len(t, rounds, 3)
	assert.Equal(t, []history.Pick{{UserID: adasID, Name: "Ada", Card: "3"}}, rounds[0].Picks, "the round that is revealed now")
	assert.Equal(t, history.Round{Number: 2, Title: "Log out"}, rounds[1], "without result")
	assert.Equal(t, []history.Pick{{UserID: adasID, Name: "Ada", Card: "2"}, {UserID: bensID, Name: "Ben", Card: "3"}}, rounds[2].Picks)
	assert.Equal(t, "Log in", rounds[2].Title)
	assert.False(t, rounds[2].RevealedAt.IsZero())
	assert.NotContains(t, ada.do(http.MethodGet, "/rooms/"+roomID+"/history", "").body, `"card":"1"`, "it was never revealed")
}

func TestAHistoryLeadsToOlderRounds(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada := visit(t, s.URL())
	ada.open(opening)
	ada.join("Ada")
	for range history.Page + 2 {
		require.Equal(t, http.StatusOK, ada.do(http.MethodPost, "/rooms/"+roomID+"/pick", `{"card": "1"}`).status)
		require.Equal(t, http.StatusOK, ada.do(http.MethodPost, "/rooms/"+roomID+"/refresh", `{}`).status)
	}

	newest := ada.history("")
	assert.Len(t, newest.Rounds, history.Page)
	require.Equal(t, "/rooms/"+roomID+"/history?before=3", newest.Older)
	older := ada.history("?before=3")
	require.Len(t, older.Rounds, 2)
	assert.Equal(t, []int{2, 1}, []int{older.Rounds[0].Number, older.Rounds[1].Number})
	assert.Empty(t, older.Older)
}

func TestAHistoryThatIsTooLongIsAProblem(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	visit(t, s.URL()).open(opening)
	handler := web.New(web.Config{
		View: s.View, Feed: looksTwice{}, Metrics: http.NotFoundHandler(),
		History: func(context.Context, string, int) ([]history.Round, error) { return nil, history.ErrTooLong },
	})
	recorder := httptest.NewRecorder()

	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/rooms/"+roomID+"/history", nil))

	assert.Equal(t, http.StatusConflict, recorder.Code)
	assert.Contains(t, recorder.Body.String(), "too much has happened")
}
