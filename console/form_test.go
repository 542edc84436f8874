package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func acting(t *testing.T, j *journal.Journal, logger watermill.LoggerAdapter) *console.Console {
	t.Helper()
	return newConsole(t, console.Config{
		Journal: j, AllowActions: true, Authorize: func(*http.Request, console.Action) (string, error) { return "ada", nil }, Logger: logger,
	})
}

// formsOf opens a page, and returns its forms of an action and the cookie of the visit.
func formsOf(t *testing.T, c http.Handler, path, action string) (forms []url.Values, cookie *http.Cookie) {
	t.Helper()
	w := httptest.NewRecorder()
	c.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/"+path, http.NoBody))
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	require.Len(t, w.Result().Cookies(), 1)
	for _, form := range regexp.MustCompile(`(?s)<form method="post".*?</form>`).FindAllString(w.Body.String(), -1) {
		fields := url.Values{}
		for _, field := range regexp.MustCompile(`type="hidden" name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
			fields.Add(field[1], strings.NewReplacer("&#43;", "+", "&amp;", "&").Replace(field[2]))
		}
		if fields.Get("action") == action {
			forms = append(forms, fields)
		}
	}
	return forms, w.Result().Cookies()[0]
}

func submit(c http.Handler, form url.Values, cookie *http.Cookie) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/action", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if cookie != nil {
		r.AddCookie(cookie)
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

func TestATimeoutThatWasSetAgainIsNotDroppedByAnOldPage(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	require.NoError(t, process.CreateTable(t.Context(), j.Client(), ""))
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	c := acting(t, j, watermill.NopLogger{})
	setTimeout(t, j, "checkout", "1", "payment", "a", at, at)
	old, cookie := formsOf(t, c, "process?type=checkout&id=1", "drop-pending")
	require.Len(t, old, 1)
	setTimeout(t, j, "checkout", "1", "payment", "b", at.Add(2*time.Hour), at.Add(2*time.Hour))

	assert.Equal(t, http.StatusConflict, submit(c, old[0], cookie).Code)
	pending := process.NewBacklog(j.Client(), "")
	count := func() (n int) {
		for _, err := range pending.Pending(t.Context(), process.BacklogQuery{}) {
			require.NoError(t, err)
			n++
		}
		return n
	}
	assert.Equal(t, 1, count(), "the new one stays")

	fresh, cookie := formsOf(t, c, "process?type=checkout&id=1", "drop-pending")
	require.Len(t, fresh, 1)
	assert.Equal(t, http.StatusSeeOther, submit(c, fresh[0], cookie).Code)
	assert.Zero(t, count())
	assert.Equal(t, http.StatusConflict, submit(c, fresh[0], cookie).Code, "it is done once")
}

func TestAnAggregateIsNotResetWithoutANumber(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	hold(t, j, 1)
	c := acting(t, j, watermill.NopLogger{})
	forms, cookie := formsOf(t, c, "behind?name=mails&topic=cart", "reset-aggregate")
	require.Len(t, forms, 1)
	assert.Equal(t, http.StatusBadRequest, submit(c, forms[0], cookie).Code)
	applied, err := groups.New(j).Position(t.Context(), "mails", aggregate.ID{Type: "cart", Value: "0"})
	require.NoError(t, err)
	assert.EqualValues(t, 1, applied)
	forms[0].Set("number", "0")
	assert.Equal(t, http.StatusSeeOther, submit(c, forms[0], cookie).Code)
}

func TestAVisitorWritesNoLinesOfTheLog(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	var log strings.Builder
	c := acting(t, j, watermill.NewStdLoggerWithOut(&log, false, false))
	forged := "x\n[watermill] level=INFO msg=\"Console action\" action=pause actor=eve outcome=done\u2028\x1b[2J\xff"
	form := url.Values{"back": {"./groups"}, "action": {"pause"}}
	for _, field := range []string{"group", "topic", "type", "id", "reason", "event_type", "model", "row", "to"} {
		form.Set(field, forged)
	}
	assert.Equal(t, http.StatusForbidden, submit(c, form, nil).Code)
	form.Set("action", forged)
	assert.Equal(t, http.StatusBadRequest, submit(c, form, nil).Code)
	assert.Equal(t, 2, strings.Count(log.String(), "msg=\"Console action\" action"), log.String())
	assert.NotContains(t, log.String(), "\n[watermill] level")
	assert.NotContains(t, log.String(), "\x1b")
	assert.NotContains(t, log.String(), "\xff")
}

func TestSkippingAllLeavesWhatThePageHasNotShown(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, nil)
	v := newVisitor(t)
	r := repositoryOf(t, s.Journal, repository.Config{})
	park := func(id string, at time.Time) {
		save(t.Context(), t, r, id, opened{"ada"})
		require.NoError(t, checkpoint.New(s.Journal).ListBehind(t.Context(), checkpoint.Group{Name: "mails"}, checkpoint.Revision{Number: 1}, checkpoint.Behind{
			Aggregate: aggregate.ID{Type: "cart", Value: id}, Head: 1, Parked: &checkpoint.Failure{Number: 1, At: at, Reason: "broken"},
		}))
	}
	park("early", time.Now().Add(-time.Minute))
	page := s.url + "group?name=mails&topic=cart"
	token := v.token(t, page)
	before := regexp.MustCompile(`name="before" value="([^"]+)"`).FindStringSubmatch(v.get(t, page).body)
	require.NotNil(t, before)
	park("late", time.Now().Add(time.Minute))
	reply := v.do(t, request(t, http.MethodPost, s.url+"action", url.Values{
		"action": {"skip-all"}, "group": {"mails"}, "topic": {"cart"}, "confirm": {"mails"}, "token": {token}, "back": {"./groups"}, "before": {before[1]},
	}))
	require.Equal(t, http.StatusSeeOther, reply.status, reply.body)
	var parked []string
	for b, err := range groups.Of(s.Journal, "mails", "cart").Parked(t.Context(), aggregate.ID{}) {
		require.NoError(t, err)
		parked = append(parked, b.Aggregate.Value)
	}
	assert.Equal(t, []string{"late"}, parked)
}
