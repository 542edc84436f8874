package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/examples/planningpoker/view"
	"github.com/millrace-dev/millrace/examples/planningpoker/web"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

const opening = `{"roomId": "` + roomID + `", "name": "Sprint 12", "deck": ["1", "2", "3"]}`

func TestTwoBrowsersPlayInOneRoom(t *testing.T) {
	t.Parallel()
	s := serve(t, testdb.Client(t), service.Config{})
	ada, bob := visit(t, s.URL()), visit(t, s.URL())

	opened := ada.do(http.MethodPost, "/rooms", opening)
	assert.Equal(t, http.StatusCreated, opened.status)
	assert.Equal(t, "/rooms/"+roomID, opened.header.Get("Location"))
	assert.JSONEq(t, `{"roomId": "`+roomID+`", "version": 1}`, opened.body)
	ada.join("Ada")
	bob.join("Bob")
	assert.JSONEq(t, `{"version": 4}`, ada.post("/rooms/"+roomID+"/pick", `{"card": "2"}`).body)

	seen := ada.room()
	assert.Equal(t, []any{roomID, "Sprint 12", []string{"1", "2", "3"}, 1, false, uint64(4), true},
		[]any{seen.RoomID, seen.Name, seen.Deck, seen.Round, seen.Revealed, seen.Version, seen.Joined})
	require.Len(t, seen.Users, 2)
	assert.Equal(t, web.User{UserID: seen.You, Name: "Ada", Present: true, Picked: true, Card: "2"}, seen.Users[0])
	byBob := bob.room()
	assert.Equal(t, web.User{UserID: seen.You, Name: "Ada", Present: true, Picked: true}, byBob.Users[0], "a card is hidden from others")
	assert.Equal(t, web.User{UserID: byBob.You, Name: "Bob", Present: true}, byBob.Users[1])

	bob.post("/rooms/"+roomID+"/pick", `{"card": "3"}`)
	byBob = bob.room()
	assert.True(t, byBob.Revealed)
	assert.Equal(t, []string{"2", "3"}, []string{byBob.Users[0].Card, byBob.Users[1].Card})
	assert.Contains(t, bob.do(http.MethodGet, "/rooms/"+roomID+"/users", "").body, `"card":"2"`)

	ada.post("/rooms/"+roomID+"/refresh", `{}`)
	ada.post("/rooms/"+roomID+"/kick", `{"userId": "`+byBob.You+`"}`)
	byBob = bob.room()
	assert.Equal(t, 2, byBob.Round)
	assert.False(t, byBob.Joined)
	ada.post("/rooms/"+roomID+"/leave", `{}`)
	assert.Empty(t, ada.room().Users)
}

func TestUsersAreListedAndLookedUp(t *testing.T) {
	t.Parallel()
	s := serve(t, testdb.Client(t), service.Config{})
	ada, bob := visit(t, s.URL()), visit(t, s.URL())
	ada.open(opening)
	ada.join("Ada")
	ada.post("/rooms/"+roomID+"/pick", `{"card": "2"}`)
	you := ada.room().You
	bob.join("Bob")

	own := `{"userId": "` + you + `", "name": "Ada", "present": true, "picked": true, "card": "2"}`
	// The cards were revealed before Bob joined.
	others := `{"userId": "` + you + `", "name": "Ada", "present": true, "picked": true, "card": "2"}`
	assert.JSONEq(t, own, ada.do(http.MethodGet, "/rooms/"+roomID+"/users/"+you, "").body)
	assert.JSONEq(t, others, bob.do(http.MethodGet, "/rooms/"+roomID+"/users/"+you, "").body)
	ada.post("/rooms/"+roomID+"/refresh", `{}`)
	ada.post("/rooms/"+roomID+"/pick", `{"card": "1"}`)
	assert.JSONEq(t, `{"userId": "`+you+`", "name": "Ada", "present": true, "picked": true}`, bob.do(http.MethodGet, "/rooms/"+roomID+"/users/"+you, "").body)
	assert.NotContains(t, bob.do(http.MethodGet, "/rooms/"+roomID+"/users", "").body, `"card"`)
	ada.post("/rooms/"+roomID+"/leave", `{}`)
	assert.Equal(t, http.StatusNotFound, bob.do(http.MethodGet, "/rooms/"+roomID+"/users/"+you, "").status)
}

// changes is a database in which the room changes between the first read and the second.
type changes struct {
	journal.Client
	reads   *int
	between func()
}

func (c changes) read() {
	if *c.reads++; *c.reads == 2 {
		c.between()
	}
}

func (c changes) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	c.read()
	return c.Client.Query(ctx, in, o...)
}

func (c changes) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	c.read()
	return c.Client.GetItem(ctx, in, o...)
}

func TestACardThatWasNeverRevealedIsNotShownByTheRevealOfALaterRound(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	s := serve(t, client, service.Config{})
	ada := visit(t, s.URL())
	ada.open(opening)
	ada.join("Ada")
	bob := visit(t, s.URL())
	for _, query := range []string{"", "/users", "/users/" + ada.room().You} {
		bob.join("Bob")
		ada.post("/rooms/"+roomID+"/refresh", `{}`)
		ada.post("/rooms/"+roomID+"/pick", `{"card": "2"}`)
		db := changes{client, new(int), func() {
			ada.post("/rooms/"+roomID+"/refresh", `{}`)
			ada.post("/rooms/"+roomID+"/pick", `{"card": "3"}`)
			bob.post("/rooms/"+roomID+"/pick", `{"card": "3"}`)
		}}
		handler := web.New(web.Config{View: view.NewDAO(db, "Room", time.Now), Feed: looksTwice{}, Metrics: http.NotFoundHandler()})
		recorder := httptest.NewRecorder()

		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/rooms/"+roomID+query, nil))

		assert.Equal(t, http.StatusOK, recorder.Code)
		assert.Contains(t, recorder.Body.String(), `"Ada"`)
		assert.NotContains(t, recorder.Body.String(), `"card":"2"`, query)
	}
}

func TestWhoSawTheRoundBeforeDoesNothingToTheNextOne(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada, bob := visit(t, s.URL()), visit(t, s.URL())
	ada.open(opening)
	ada.join("Ada")
	bob.join("Bob")
	ada.post("/rooms/"+roomID+"/pick", `{"card": "2", "round": 1}`)
	ada.post("/rooms/"+roomID+"/refresh", `{"round": 1}`)
	ada.post("/rooms/"+roomID+"/pick", `{"card": "3", "round": 2}`)
	before := ada.room()

	bob.post("/rooms/"+roomID+"/refresh", `{"round": 1}`)
	late := bob.do(http.MethodPost, "/rooms/"+roomID+"/pick", `{"card": "1", "round": 1}`)

	assert.Equal(t, before, ada.room())
	assert.Equal(t, http.StatusConflict, late.status)
	assert.Contains(t, late.body, "the round is over")
	bob.post("/rooms/"+roomID+"/refresh", `{"round": 2}`)
	assert.Equal(t, 3, ada.room().Round)
}

func TestAllPickAtOnceAndAllSeeTheTruth(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	servers := []*service.Server{serve(t, client, service.Config{}), serve(t, client, service.Config{})}
	team := make([]*browser, 6)
	for i := range team {
		team[i] = visit(t, servers[i%2].URL())
		if i == 0 {
			team[i].open(opening)
		}
		team[i].join(fmt.Sprint("user ", i))
	}

	var together sync.WaitGroup
	for _, each := range team {
		together.Add(1)
		go func() {
			defer together.Done()
			each.do(http.MethodPost, "/rooms/"+roomID+"/pick?wait=true", `{"card": "2"}`)
		}()
	}
	together.Wait()

	require.NoError(t, servers[0].Settle(t.Context()))
	for i, each := range team {
		seen := each.room()
		assert.True(t, seen.Revealed, "user %d", i)
		assert.EqualValues(t, 1+6+6+1, seen.Version)
		require.Len(t, seen.Users, len(team))
		for _, u := range seen.Users {
			assert.Equal(t, "2", u.Card)
		}
	}
}

func TestAnIDSaysNothingOfItsSecret(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada := stranger(t, s.URL())

	first := ada.do(http.MethodGet, "/rooms/"+roomID, "")
	cookie := first.header.Get("Set-Cookie")
	assert.Regexp(t, `^poker_user=[0-9a-f]{32}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax$`, cookie)
	again := ada.do(http.MethodGet, "/", "")
	assert.Empty(t, again.header.Get("Set-Cookie"), "it is set once")
	ada.open(opening)
	you := ada.room().You
	assert.Regexp(t, `^[a-z2-7]{24}$`, you)
	assert.NotContains(t, cookie, you)
	assert.NotEqual(t, you, visit(t, s.URL()).room().You)
}

func TestBehindAProxyThatDoesTLSTheCookieIsForHTTPSAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{SecureCookie: true})
	cookie := stranger(t, s.URL()).do(http.MethodGet, "/", "").header.Get("Set-Cookie")
	assert.Regexp(t, `^poker_user=[0-9a-f]{32}; .*; Secure(;|$)`, cookie)
}

func TestWhatCannotBeDoneIsAProblemWithAReason(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada, ben := visit(t, s.URL()), visit(t, s.URL())
	ada.open(opening)
	ada.join("Ada")
	noCards := ada.do(http.MethodPost, "/rooms/"+roomID+"/reveal", `{}`)
	assert.Equal(t, http.StatusConflict, noCards.status, noCards.body)
	assert.Contains(t, noCards.body, "nobody has picked")
	ada.post("/rooms/"+roomID+"/pick", `{"card": "1"}`)
	const unknown = "/rooms/01J00000000000000000000RXN"
	for _, c := range []struct {
		who                *browser
		method, path, body string
		status             int
		reason             string
	}{
		{ada, "POST", "/rooms", opening, 409, "open already"},
		{ada, "POST", "/rooms", `{"name": ""}`, 400, "1 to 80 characters"},
		{ada, "POST", "/rooms", `{"name": "x", "roomId": "x"}`, 400, "roomId"},
		{ada, "POST", "/rooms", `{"name": "x", "lifetimeMinutes": 9223372036854775807}`, 400, "1 minute to 7 days"},
		{ada, "POST", "/rooms", `{"name": "x", "lifetimeMinutes": -1}`, 400, "1 minute to 7 days"},
		// As nanoseconds this is 1.5 minutes modulo 2^64.
		{ada, "POST", "/rooms", `{"name": "x", "lifetimeMinutes": -307445733}`, 400, "1 minute to 7 days"},
		{ada, "POST", "/rooms", `{"name": "\u202e"}`, 400, "can be seen"},
		{ada, "POST", "/rooms", `{"name": "x", "title": "two\nlines"}`, 400, "at most 200 characters"},
		{ada, "POST", "/rooms/" + roomID + "/refresh", `{"title": "\u0000"}`, 400, "at most 200 characters"},
		{ada, "GET", "/rooms/" + roomID + "/history?before=0", ``, 400, "number of a round"},
		{ada, "GET", "/rooms/" + roomID + "/history?before=x", ``, 400, "number of a round"},
		{ada, "GET", unknown + "/history", ``, 404, "no such room"},
		{ada, "POST", "/rooms", `{"name": "x", "deck": ["1"]}`, 400, "2 to 20"},
		{ada, "POST", "/rooms", `{"nome": "x"}`, 400, "nome"},
		{ada, "POST", "/rooms", ``, 415, "application/json"},
		{ada, "POST", "/rooms?wait=perhaps", `{"name": "x"}`, 400, "wait"},
		{ben, "POST", "/rooms/" + roomID + "/reveal", `{}`, 403, "not in the room"},
		{ben, "POST", "/rooms/" + roomID + "/pick", `{"card": "1"}`, 403, "not in the room"},
		{ada, "POST", "/rooms/" + roomID + "/pick", `{"card": "9"}`, 400, "no card"},
		{ada, "POST", "/rooms/" + roomID + "/pick", `{"card": "2"}`, 409, "revealed"},
		{ada, "POST", "/rooms/" + roomID + "/kick", `{"userId": "x"}`, 409, "no such user"},
		{ada, "POST", unknown + "/leave", `{}`, 404, "no such room"},
		{ada, "GET", unknown, ``, 404, "no such room"},
		{ada, "GET", unknown + "/events", ``, 404, "no such room"},
		{ada, "GET", unknown + "/users", ``, 404, "no such room"},
		{ada, "GET", "/rooms/x", ``, 404, "no such room"},
		{ada, "GET", "/rooms/" + roomID + "/users/x", ``, 404, "no such user"},
		{ada, "GET", "/static/nothing.js", ``, 404, "nothing"},
		{ada, "GET", "/static/", ``, 404, "nothing"},
		{ada, "DELETE", "/rooms/" + roomID, ``, 405, "not DELETE"},
		{stranger(t, s.URL()), "POST", "/rooms/" + roomID + "/join", `{"name": "x"}`, 400, "poker_user"},
	} {
		got := c.who.do(c.method, c.path, c.body)
		assert.Equal(t, c.status, got.status, "%s %s %s: %s", c.method, c.path, c.body, got.body)
		assert.Equal(t, "application/problem+json", got.header.Get("Content-Type"), "%s %s", c.method, c.path)
		assert.Contains(t, got.body, c.reason, "%s %s %s", c.method, c.path, c.body)
	}
}

func TestAFormOfAnotherSiteIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada := visit(t, s.URL())
	ada.open(opening)
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/rooms/"+roomID+"/join", strings.NewReader(`{"name": "Ada"}`))
		require.NoError(t, err)
		request.Header.Set("Content-Type", kind)
		response, err := ada.client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusUnsupportedMediaType, response.StatusCode, kind)
	}
}

func TestHeadSaysWhatGetWould(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t, dynamotest.WithExpiryDelay(time.Hour))
	s := serve(t, db.Client(), service.Config{Now: db.Clock().Now})
	ada := visit(t, s.URL())
	path := "/rooms/" + roomID
	assert.Equal(t, http.StatusNotFound, ada.do(http.MethodHead, path, "").status)
	ada.open(opening)
	for _, found := range []string{path, path + "/users", path + "/events", "/", "/r/" + roomID, "/healthz"} {
		got := ada.do(http.MethodHead, found, "")
		assert.Equal(t, http.StatusOK, got.status, found)
		assert.Empty(t, got.body)
	}
	db.Clock().Advance(24 * time.Hour)
	assert.Equal(t, http.StatusGone, ada.do(http.MethodHead, path, "").status)
}

func TestARoomThatHasExpiredSaysSoEvenWhenOnlyTheJournalKnowsIt(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t, dynamotest.WithExpiryDelay(time.Hour))
	s := serve(t, db.Client(), service.Config{Now: db.Clock().Now})
	ada, bob := visit(t, s.URL()), visit(t, s.URL())
	ada.open(strings.Replace(opening, "{", `{"lifetimeMinutes": 90,`, 1))
	ada.join("Ada")

	db.Clock().Advance(90 * time.Minute)
	commands := map[string]string{
		"/join": `{"name": "Bob"}`, "/leave": `{}`, "/pick": `{"card": "1"}`, "/reveal": `{}`, "/refresh": `{}`, "/kick": `{"userId": "x"}`,
	}
	refused := func(method, path, body string) {
		t.Helper()
		got := bob.do(method, path, body)
		assert.Equal(t, http.StatusGone, got.status, "%s %s: %s", method, path, got.body)
		assert.Contains(t, got.body, "the room has expired: it was open until 20", "%s %s", method, path)
	}
	all := func() {
		t.Helper()
		for _, query := range []string{"", "/users", "/users/x", "/history", "/events"} {
			refused(http.MethodGet, "/rooms/"+roomID+query, "")
			assert.Equal(t, http.StatusGone, bob.do(http.MethodHead, "/rooms/"+roomID+query, "").status, query)
		}
		for command, body := range commands {
			refused(http.MethodPost, "/rooms/"+roomID+command, body)
		}
		refused(http.MethodPost, "/rooms", opening)
	}
	all()
	db.Clock().Advance(time.Hour) // the rows are deleted
	all()
}

func TestARoomSaysThatItEndsSoon(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	s := serve(t, db.Client(), service.Config{Now: db.Clock().Now})
	ada := visit(t, s.URL())
	ada.open(opening)
	assert.False(t, ada.room().EndsSoon)
	db.Clock().Advance(24*time.Hour - 9*time.Minute)
	assert.True(t, ada.room().EndsSoon)
}

func TestARoundIsRevealedWithoutThoseWhoDoNotPick(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada, ben := visit(t, s.URL()), visit(t, s.URL())
	ada.open(opening)
	ada.join("Ada")
	ben.join("Ben")
	ada.post("/rooms/"+roomID+"/pick", `{"card": "2"}`)
	assert.Empty(t, ben.room().Users[0].Card)

	ben.post("/rooms/"+roomID+"/reveal", `{"round": 1}`)

	seen := ben.room()
	assert.True(t, seen.Revealed)
	assert.Equal(t, []string{"2", ""}, []string{seen.Users[0].Card, seen.Users[1].Card})
	ben.post("/rooms/"+roomID+"/refresh", `{"round": 1}`)
	ada.post("/rooms/"+roomID+"/pick", `{"card": "3"}`)
	ben.post("/rooms/"+roomID+"/reveal", `{"round": 1}`)
	assert.False(t, ben.room().Revealed, "it was meant for the round before")
}

func TestWhoWasKickedJoinsAgain(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada, ben := visit(t, s.URL()), visit(t, s.URL())
	ada.open(opening)
	ada.join("Ada")
	ben.join("Ben")
	ada.post("/rooms/"+roomID+"/kick", `{"userId": "`+ben.room().You+`"}`)
	assert.False(t, ben.room().Joined)
	ben.join("Ben")
	assert.True(t, ben.room().Joined)
}
