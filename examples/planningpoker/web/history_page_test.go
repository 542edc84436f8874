package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/examples/planningpoker/client"
	"github.com/millrace-dev/millrace/examples/planningpoker/history"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
)

// historyOf returns the earlier rounds on a user's page, and their JSON.
func historyOf(u *browsertest.User) (shown, answer string) {
	return browsertest.Evaluate[string](u, `document.getElementById("history").innerText`),
		browsertest.Evaluate[string](u, `fetch(location.pathname.replace("/r/", "/rooms/") + "/history").then((reply) => reply.text())`)
}

func TestATeamSeesWhatItEstimatedBefore(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	const script = `<img src=x onerror=alert(1)>`
	ada, ben := chromium.User(t, "Ada"), chromium.User(t, "Ben")
	url := s.URL() + openWith(ada, s.URL(), "Sprint 12", "Log in")
	ada.Sees("Log in")
	enter(ada, url, "Ada")
	enter(ben, url, script)
	ada.Sees("0 of 2 have picked")
	ada.SeesNo("History")

	ada.Press("5")
	ben.Press("13")
	for _, u := range []*browsertest.User{ada, ben} {
		u.Sees("History", "Round 1: Log in", "Average 9, from 5 to 13. Revealed ", "Ada: 5", script+": 13")
	}

	ben.Type("Next story (optional)", script)
	nextRound(ben, "Start round 2")
	ada.Sees("Round 2", script, "0 of 2 have picked")
	ben.Waits(`document.getElementById("next").elements.title.value === ""`)
	ada.Press("21")
	ben.Sees("1 of 2 have picked")
	for _, u := range []*browsertest.User{ada, ben} {
		shown, answer := historyOf(u)
		assert.NotContains(t, shown, ": 21", "what Ada has picked; a time can have 21 too")
		assert.NotContains(t, answer, `"21"`)
	}
	nextRound(ben, "Start round 3")
	ada.Sees("Round 2: "+script, "Without result, as the table was refreshed before the cards were revealed.")
	ada.Press("3")
	ben.Sees("1 of 2 have picked")
	ben.Press("Leave")
	ada.Sees("Round 3", "Average 3, from 3 to 3. Revealed", "Ada: 3", script+": 13")
	ben.Reload()
	ben.Sees("Round 3", "Round 2: "+script, "Ada: 5", "Ada: 3")

	for _, u := range []*browsertest.User{ada, ben} {
		shown, answer := historyOf(u)
		assert.NotContains(t, shown, ": 21", "a card that was not revealed")
		assert.NotContains(t, answer, `"21"`)
		assert.Zero(t, browsertest.Evaluate[int](u, `document.querySelectorAll("img").length`))
	}
	for _, seen := range ben.Received() {
		assert.NotContains(t, seen, `"card":"21"`)
	}
}

func TestAStoryIsChosenBeforeAnybodyPicks(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada := chromium.User(t, "Ada")
	path := open(ada, s.URL(), "Sprint 12")
	enter(ada, s.URL()+path, "Ada")
	disabled := func() bool {
		return browsertest.Evaluate[bool](ada, `document.getElementById("refresh").getAttribute("aria-disabled") === "true"`)
	}
	assert.True(t, disabled())

	ada.TabTo("Next story (optional)")
	ada.Keys("Log in")
	assert.False(t, disabled())
	ada.Keys(kb.Enter)

	ada.Sees("Round 2", "Log in", "Round 1", "Without result")
	ada.Waits(`document.getElementById("next").elements.title.value === ""`)
	assert.True(t, disabled())
}

func TestOlderRoundsAreShownOnRequest(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada := chromium.User(t, "Ada")
	path := open(ada, s.URL(), "Sprint 12")
	id := strings.TrimPrefix(path, "/r/")
	ben := client.New(s.URL, http.DefaultTransport)
	require.NoError(t, ben.Visit(t.Context()))
	do := func(command string, body client.Body) {
		_, err := ben.Do(t.Context(), id, command, body)
		require.NoError(t, err)
	}
	do("join", client.Body{"name": "Ben"})
	for n := range 2*history.Page + 1 {
		do("pick", client.Body{"card": "5"})
		do("refresh?wait=true", client.Body{"title": fmt.Sprint("story ", n+2)})
	}
	numbers := func() string {
		return browsertest.Evaluate[string](ada, `[...document.querySelectorAll("#rounds h3")].map((h3) => h3.textContent.match(/\d+/)[0]).join(" ")`)
	}
	want := func(from, to int) (all string) {
		for n := from; n >= to; n-- {
			all += fmt.Sprint(n, " ")
		}
		return strings.TrimSpace(all)
	}

	ada.Reload()
	ada.Sees("Round 101: story 101")
	assert.Equal(t, want(101, 52), numbers())
	ada.TabTo("Show older rounds")
	ada.Keys(kb.Enter)
	ada.Sees("Round 2: story 2")
	assert.Equal(t, want(101, 2), numbers())
	assert.Equal(t, "Round 51: story 51", browsertest.Evaluate[string](ada, "document.activeElement.textContent"))
	do("pick?wait=true", client.Body{"card": "8"})
	ada.Sees("Round 102: story 102")
	assert.Equal(t, want(102, 2), numbers(), "the newer one comes to those that are shown")
	ada.Press("Show older rounds")
	ada.Waits(`document.getElementById("older").hidden`)
	assert.Equal(t, want(102, 1), numbers())
	ada.Readable()
}
