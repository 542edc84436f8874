package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/journal"
)

func TestTheErrorPageOfAnActionLeadsBackToThePage(t *testing.T) {
	t.Parallel()
	c := newConsole(t, console.Config{
		Journal: newJournal(t, journal.Config{}), AllowActions: true, Logger: watermill.NopLogger{},
		Authorize: func(*http.Request, console.Action) (string, error) { return "ada", nil },
	})
	form := url.Values{"action": {"pause"}, "group": {"mails"}, "topic": {"cart"}, "back": {"./group?name=mails&topic=cart"}}
	// The form has no token.
	r := httptest.NewRequest(http.MethodPost, "/action", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()

	c.ServeHTTP(w, r)

	assert.Equal(t, http.StatusForbidden, w.Code)
	assert.Contains(t, w.Body.String(), `<a href="./group?name=mails&amp;topic=cart">Back to the page</a>`)
	assert.NotContains(t, w.Body.String(), "Read only", "the console has actions")
	assert.NotContains(t, w.Body.String(), "aria-current", "it is none of the pages")
}
