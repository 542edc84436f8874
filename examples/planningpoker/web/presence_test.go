package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/planningpoker/client"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/examples/planningpoker/web"
	"github.com/millrace-dev/millrace/live"
)

func TestEveryServerShowsWhoHasAPageOpen(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	config := service.Config{Now: db.Clock().Now}
	here, there := serve(t, db.Client(), config), serve(t, db.Client(), config)
	ada, ben := visit(t, here.URL()), client.New(there.URL, http.DefaultTransport)
	ada.open(opening)
	ada.join("Ada")
	require.NoError(t, ben.Visit(t.Context()))
	_, err := ben.Do(t.Context(), roomID, "join?wait=true", client.Body{"name": "Ben"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(ada.room().Users) == 2 }, patience, 10*time.Millisecond, "Ben must be there")
	present := func() [2]bool { return [2]bool{ada.room().Users[0].Present, ada.room().Users[1].Present} }
	assert.Equal(t, [2]bool{true, true}, present(), "who joins is there")
	db.Clock().Advance(time.Minute)
	assert.Equal(t, [2]bool{false, false}, present(), "nobody has a page open")

	err = ben.Watch(t.Context(), roomID, func(r web.Room) bool {
		assert.Equal(t, [2]bool{false, true}, [2]bool{r.Users[0].Present, r.Users[1].Present})
		return true
	})

	require.NoError(t, err)
	assert.Equal(t, [2]bool{false, true}, present())
	db.Clock().Advance(time.Minute)
	assert.Equal(t, [2]bool{false, false}, present(), "the page is closed")
}

// notedFeed is a feed that shows a room once, and records its notifications.
type notedFeed struct{ noted *[]string }

func (notedFeed) Serve(_ http.ResponseWriter, r *http.Request, _ string, show func(context.Context) (live.Update, error)) error {
	_, err := show(r.Context())
	return err
}

func (f notedFeed) Notify(key string) { *f.noted = append(*f.noted, key) }

func TestTheOthersAreToldOfWhoReturns(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	s := serve(t, db.Client(), service.Config{Now: db.Clock().Now})
	ada := visit(t, s.URL())
	ada.open(opening)
	ada.join("Ada")
	db.Clock().Advance(time.Minute)
	var noted []string
	handler := web.New(web.Config{View: s.View, Feed: notedFeed{&noted}, Metrics: http.NotFoundHandler()})
	base, err := url.Parse(s.URL())
	require.NoError(t, err)
	request := httptest.NewRequest(http.MethodGet, "/rooms/"+roomID+"/events", nil)
	request.AddCookie(ada.client.Jar.Cookies(base)[0])

	for range 2 { // the second one is not new
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}

	assert.Equal(t, []string{roomID}, noted)
}

func TestARoomIsShownWhereItCannotBeNotedWhoIsPresent(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	s := serve(t, db.Client(), service.Config{Now: db.Clock().Now})
	ada := client.New(s.URL, http.DefaultTransport)
	require.NoError(t, ada.Visit(t.Context()))
	_, err := ada.Open(t.Context(), client.Body{"roomId": roomID, "name": "Sprint 12"})
	require.NoError(t, err)
	_, err = ada.Do(t.Context(), roomID, "join?wait=true", client.Body{"name": "Ada"})
	require.NoError(t, err)
	db.Clock().Advance(time.Minute)
	fault := db.Inject(dynamotest.InternalError(), dynamotest.Table("Room"), dynamotest.On("UpdateItem"))
	defer fault.Remove()

	shown := false
	err = ada.Watch(t.Context(), roomID, func(web.Room) bool {
		shown = true
		return true
	})

	require.NoError(t, err)
	assert.True(t, shown)
	assert.Positive(t, fault.Fired())
}
