package web_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/internal/apptest"
	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/examples/planningpoker/service"
	"github.com/millrace-dev/millrace/internal/testdb"
)

var (
	chromium browsertest.Chromium // one for all tests, except those that open tabs
	tabbed   = browsertest.Chromium{Tabs: true}
)

func TestMain(m *testing.M) {
	code := m.Run()
	chromium.Close()
	tabbed.Close()
	os.Exit(code)
}

// open makes a user open a room, and returns the path of its page.
func open(u *browsertest.User, base, name string) (path string) {
	return openWith(u, base, name, "")
}

// openWith does the same with a story for the first round.
func openWith(u *browsertest.User, base, name, story string) (path string) {
	u.Open(base)
	u.Type("Room name", name)
	u.Type("First story (optional)", story)
	u.Press("Open the room")
	u.Sees("Link to this room", name)
	return strings.TrimPrefix(u.URL(), base)
}

// enter makes a user join the room of the page.
func enter(u *browsertest.User, url, name string) {
	u.Open(url)
	u.Type("Your name", name)
	u.Press("Join")
	u.Sees(name + " (you)")
}

func TestATeamPlaysInThreeBrowsersOnTwoServers(t *testing.T) {
	t.Parallel()
	db := testdb.Client(t)
	here, there := serve(t, db, service.Config{}).URL(), serve(t, db, service.Config{}).URL()
	ada, ben, cleo := chromium.User(t, "Ada"), chromium.User(t, "Ben"), chromium.User(t, "Cleo")
	path := open(ada, here, "Sprint 12")
	ada.Press("Copy link")
	ada.Sees("The link is copied.")
	link := browsertest.Evaluate[string](ada, "navigator.clipboard.readText()")
	require.Equal(t, here+path, link)
	enter(ada, link, "Ada")
	enter(ben, link, "Ben")
	enter(cleo, there+path, "Cleo")
	ada.Sees("Ben", "Cleo", "0 of 3 have picked")

	ada.Press("5")
	ben.Press("13")
	for _, u := range []*browsertest.User{ada, ben, cleo} {
		u.Sees("2 of 3 have picked")
		u.SeesNo("Average")
	}
	for _, seen := range append(ben.Received(), cleo.Received()...) {
		assert.NotContains(t, seen, `"card":"5"`, "only Ada knows her card, and not even the page of others")
	}
	for _, path := range []string{"", "/users"} {
		answer := browsertest.Evaluate[string](ben, `fetch(location.pathname.replace("/r/", "/rooms/") + "`+path+`").then((reply) => reply.text())`)
		assert.Equal(t, 1, strings.Count(answer, `"card"`), "Ben is told of none but his own: %s", answer)
	}
	cleo.Press("8")
	for _, u := range []*browsertest.User{ada, ben, cleo} {
		u.Sees("Average 8.7, from 5 to 13", "Refresh the table to pick again")
	}

	nextRound(ben, "Start round 2")
	for _, u := range []*browsertest.User{ada, ben, cleo} {
		u.Sees("Round 2", "0 of 3 have picked")
	}

	cleo.Press("Leave")
	cleo.Sees("Your name")
	ada.SeesNo("Cleo (you)")
	ada.Sees("0 of 2 have picked", "Cleo left")
	ada.Press("Kick Ben")
	ada.Sees("Kick Ben?")
	ada.Press("Kick out")
	ada.Sees("0 of 1 have picked")
	ben.Sees("You are no longer at the table", "You can join again.")
	ben.Press("Join") // kicked users may join again, as may users who left
	ada.Sees("0 of 2 have picked")
	cleo.Press("Join")
	ada.Sees("0 of 3 have picked")
}

// nextRound makes a user refresh the table, and confirm it.
func nextRound(u *browsertest.User, confirm string) {
	u.Press("Refresh the table")
	u.Press(confirm)
}

func TestTwoWhoActAtOnceBothSeeTheTruth(t *testing.T) {
	t.Parallel()
	db := testdb.Client(t)
	here, there := serve(t, db, service.Config{}).URL(), serve(t, db, service.Config{}).URL()
	ada, ben := chromium.User(t, "Ada"), chromium.User(t, "Ben")
	path := open(ada, here, "Sprint 12")
	enter(ada, here+path, "Ada")
	enter(ben, there+path, "Ben")
	for _, u := range []*browsertest.User{ada, ben} {
		u.Sees("0 of 2 have picked")
	}

	browsertest.Together(t, func() { ada.Press("5") }, func() { ben.Press("5") })
	for _, u := range []*browsertest.User{ada, ben} {
		u.Sees("All picked 5")
	}
	for _, u := range []*browsertest.User{ada, ben} {
		u.Press("Refresh the table")
		u.Sees("Start round 2")
	}
	confirm := func(u *browsertest.User) func() { // the question may be gone already
		return func() { browsertest.Evaluate[any](u, `{ document.getElementById("ask-yes").click(); null; }`) }
	}
	browsertest.Together(t, confirm(ada), confirm(ben))
	for _, u := range []*browsertest.User{ada, ben} {
		u.Sees("Round 2", "0 of 2 have picked")
	}

	// Ben's refresh arrives after Ada has picked in the next round.
	ada.Press("1")
	ben.Sees("1 of 2 have picked")
	browsertest.Evaluate[any](ben, `{
		const fetch = window.fetch;
		window.fetch = async (...request) => {
			await new Promise((release) => { window.release = release; });
			const reply = await fetch(...request);
			window.replied = reply.status;
			return reply;
		};
		null;
	}`)
	nextRound(ben, "Start round 3")
	ben.Waits(`window.release !== undefined`)
	nextRound(ada, "Start round 3")
	for _, u := range []*browsertest.User{ada, ben} {
		u.Sees("Round 3", "0 of 2 have picked")
	}
	ada.Press("8")
	ben.Sees("1 of 2 have picked")
	browsertest.Evaluate[any](ben, `{ window.release(); null; }`)
	ben.Waits(`window.replied === 200`)
	ben.Sees("Round 3", "1 of 2 have picked")
	nextRound(ada, "Start round 4")
	for _, u := range []*browsertest.User{ada, ben} {
		u.Sees("Round 4", "0 of 2 have picked")
	}
}

func TestTheCardThatWasClickedLastCounts(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada, ben := chromium.User(t, "Ada"), chromium.User(t, "Ben")
	path := open(ada, s.URL(), "Sprint 12")
	enter(ada, s.URL()+path, "Ada")
	enter(ben, s.URL()+path, "Ben")
	ada.Sees("0 of 2 have picked")

	// While the first request is in progress.
	browsertest.Evaluate[any](ada, `document.querySelectorAll("#hand .card").forEach((card) => ["1", "2"].includes(card.value) && card.click())`)
	ada.Waits(`performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("/pick")).length === 2`)
	ben.Press("8")
	ada.Sees("Average 5, from 2 to 8")
}

func TestARoomIsPlayedWithTheKeyboardAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada := chromium.User(t, "Ada")
	ada.Open(s.URL())
	ada.TabTo("Room name")
	ada.Keys("Sprint 12")
	ada.TabTo("Open the room")
	ada.Keys(kb.Enter)
	ada.Sees("Link to this room")
	ada.TabTo("Your name")
	ada.Keys("Ada" + kb.Enter)
	ada.Sees("Ada (you)")
	require.Equal(t, "1", ada.Focus(), "who has joined is at the cards")

	ada.Keys(kb.ArrowRight + kb.ArrowRight)
	require.Equal(t, "3", ada.Focus())
	ben := chromium.User(t, "Ben")
	enter(ben, ada.URL(), "Ben")
	ada.Sees("0 of 2 have picked")
	require.Equal(t, "3", ada.Focus(), "what others do does not take the focus away")
	ada.Keys(kb.Enter)
	ada.Sees("1 of 2 have picked")
	ada.Keys(kb.End + kb.ArrowRight + " ")
	// Her card has to arrive before Ben's, which ends the round.
	ada.Waits(`performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("/pick")).length === 2`)
	ben.Press("1")
	ada.Sees("All picked 1")
	require.Equal(t, "1", ada.Focus(), "nor does the reveal")
	ada.TabTo("Refresh the table")
	ada.Keys(kb.Enter)
	ada.Sees("Refresh the table?")
	require.Equal(t, "Cancel", ada.Focus())
	ada.TabTo("Start round 2")
	ada.Keys(kb.Enter)
	ada.Sees("Round 2", "0 of 2 have picked")
	require.Equal(t, "Refresh the table", ada.Focus())

	ada.Keys(kb.Shift + kb.Tab)
	ada.TabTo("Kick Ben")
	ada.Keys(kb.Enter)
	ada.Sees("Kick Ben?")
	require.Equal(t, "Cancel", ada.Focus())
	ada.Keys(kb.Escape)
	ada.SeesNo("Kick Ben?")
	require.Equal(t, "Kick Ben", ada.Focus(), "back where it was")
	ada.Keys(kb.Enter)
	ada.Sees("Kick Ben?")
	ada.TabTo("Kick out")
	ada.Keys(kb.Enter)
	ada.Sees("0 of 1 have picked")
	ada.TabTo("Leave")
	ada.Keys(kb.Enter)
	ada.Sees("Your name")
	ada.Waits(`document.activeElement.name === "name"`)
}

// The browser reports later that a dialog was closed, when it may be open again.
func TestAQuestionIsNotAnsweredByTheOneBefore(t *testing.T) {
	t.Parallel()
	base := serve(t, dynamotest.New(t).Client(), service.Config{}).URL()
	ada, ben := chromium.User(t, "Ada"), chromium.User(t, "Ben")
	url := base + open(ada, base, "Sprint 12")
	enter(ada, url, "Ada")
	enter(ben, url, "Ben")
	ada.Press("Kick Ben")
	ada.Sees("Kick Ben?")
	browsertest.Evaluate[any](ada, `{ document.getElementById("ask").close(); document.querySelector('[aria-label="Kick Ben"]').click(); null; }`)
	ada.Sees("Kick Ben?")
	ada.Press("Kick out")
	ada.Sees("0 of 1 have picked")
}

func TestARoomCanBeReadOnAPhoneInTheLightAndInTheDark(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	const long = "Dmitri-Konstantinowitsch-Überlang-Namen"
	light := chromium.User(t, "Ada", browsertest.Phone, browsertest.Still)
	dark := chromium.User(t, "Ben", browsertest.Phone, browsertest.Still, browsertest.Dark)
	readable := func() {
		t.Helper()
		light.Readable()
		dark.Readable()
	}
	for _, u := range []*browsertest.User{light, dark} {
		u.Open(s.URL())
		u.Sees("Open the room")
		u.Choose("Deck", "own")
	}
	readable()
	light.Type("Your cards, with spaces between", "XXS XS S M L XL XXL XXXL ½ 100000 ☕ ?")
	light.Type("Room name", "A-room-with-a-name-that-has-no-place-to-break-in-it-at-all")
	light.Press("Open the room")
	light.Sees("Nobody is at the table yet")
	path := strings.TrimPrefix(light.URL(), s.URL())
	dark.Open(s.URL() + path)
	dark.Sees("Nobody is at the table yet")
	readable()
	enter(light, s.URL()+path, long)
	enter(dark, s.URL()+path, "Ben")
	light.Press("XXXL")
	light.Press("Kick Ben")
	dark.Sees("1 of 2 have picked")
	readable()
	light.Press("Cancel")
	dark.Press("Reveal the cards")
	dark.Sees("Without a card: you.")
	dark.Press("Cancel")
	light.Press("Refresh the table")
	light.Sees("Their cards are taken back unseen")
	readable()
	light.Press("Cancel")
	light.Type("Next story (optional)", "A-story-with-a-title-that-has-no-place-to-break-in-it-at-all")
	dark.Press("100000")
	light.Sees("Average 100000", "History", long+": XXXL")
	dark.Sees("Average 100000", "History", long+": XXXL")
	readable()
	nextRound(light, "Start round 2")
	for _, u := range []*browsertest.User{light, dark} {
		u.Sees("Round 2", "0 of 2 have picked")
	}
	dark.Press("100000")
	light.Press("XXXL")
	dark.Sees("Round 2: A-story", "Average 100000")
	light.Sees("Round 2: A-story", "Average 100000")
	readable()
	assert.True(t, browsertest.Evaluate[bool](dark,
		`getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).every((part) => part < 64)`), "the page is dark")
}

func TestNamesAreNothingButText(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	const name = `<img src=x onerror=alert(1)>`
	eve, ada := chromium.User(t, "Eve"), chromium.User(t, "Ada")
	path := open(eve, s.URL(), "<b>bold</b>")
	enter(eve, s.URL()+path, name)
	enter(ada, s.URL()+path, "Ada")
	ada.Sees(name, "<b>bold</b>")
	ada.Press("Kick " + name)
	ada.Sees("Kick " + name + "?")
}

func TestThePageGoesOnWhenTheServerIsRestarted(t *testing.T) {
	t.Parallel()
	db := testdb.Client(t)
	first := serve(t, db, service.Config{})
	relay := apptest.NewRelay(t)
	relay.To(strings.TrimPrefix(first.URL(), "http://"))
	url := "http://" + relay.Address()
	ada := chromium.User(t, "Ada")
	path := open(ada, url, "Sprint 12")
	enter(ada, url+path, "Ada")
	ada.Expects("net::ERR_")

	relay.To("")
	require.NoError(t, first.Close())
	ada.Sees("Connection lost, trying again")
	ada.Press("5")
	ada.Sees("The server does not answer. Check whether it was done")
	relay.To(strings.TrimPrefix(serve(t, db, service.Config{}).URL(), "http://"))
	ada.SeesNo("Connection lost")
	ben := chromium.User(t, "Ben")
	enter(ben, url+path, "Ben")
	ben.Press("8")

	ada.Sees("Ben", "1 of 2 have picked")
	ada.Press("5")
	ada.Sees("Average 6.5, from 5 to 8")
}

func TestThePageAnnouncesTheEndOfARoom(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t, dynamotest.WithExpiryDelay(time.Hour))
	s := serve(t, db.Client(), service.Config{Now: db.Clock().Now})
	ada, ben := chromium.User(t, "Ada"), chromium.User(t, "Ben")
	path := open(ada, s.URL(), "Sprint 12")
	enter(ada, s.URL()+path, "Ada")
	ada.SeesNo("This room ends")
	ada.Expects("status 410")
	ben.Expects("status 410", "status 404")

	db.Clock().Advance(24*time.Hour - 5*time.Minute)
	ada.Press("5")
	ada.Sees("This room ends at ")
	ada.Readable()
	ends := browsertest.Evaluate[string](ada, `document.getElementById("ending").textContent.match(/\d\d:\d\d/)[0]`)
	db.Clock().Advance(5 * time.Minute)
	// The stream may have said it already, and then the button is hidden.
	browsertest.Evaluate[any](ada, `{ document.getElementById("leave").click(); null; }`)
	ada.Sees("This room has ended", "The room has expired: it was open until", ends, "Open a new room")
	ada.SeesNo("Your card")
	assert.NotRegexp(t, `\d{4}-\d\d-\d\dT`, ada.Text(), "times are the user's")
	ben.Open(s.URL() + path)
	ben.Sees("This room has ended", "Open a new room")
	db.Clock().Advance(time.Hour) // the rows are deleted
	ben.Reload()
	ben.Sees("This room has ended", "The room has expired: it was open until", ends, "Open a new room")
	ben.Open(s.URL() + "/r/01J00000000000000000000RXN")
	ben.Sees("There is no such room", "Open a new room")
}

func TestARoundGoesOnWithoutWhoIsAway(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	s := serve(t, db.Client(), service.Config{Now: db.Clock().Now})
	ada, ben := chromium.User(t, "Ada"), chromium.User(t, "Ben")
	path := open(ada, s.URL(), "Sprint 12")
	enter(ada, s.URL()+path, "Ada")
	enter(ben, s.URL()+path, "Ben")
	ada.Sees("Ben", "0 of 2 have picked")
	assert.NotContains(t, ada.Text(), "away")

	ben.Open("about:blank")
	card, picks := "", 0
	pick := func(next string) {
		card, picks = next, picks+1
		ada.Press(card)
		ada.Waits(fmt.Sprintf(
			`performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("/pick")).length === %d`, picks))
	}
	// The server may show the room once more to the page that is gone, and then Ben is present for
	// another minute.
	for picks < 100 && !strings.Contains(ada.Text(), "away") {
		db.Clock().Advance(time.Minute)
		pick([]string{"5", "8"}[picks%2])
	}
	if card == "8" {
		pick("5")
	}
	ada.Sees("1 of 2 have picked", "away")
	ada.Readable()
	ada.Press("Reveal the cards")
	ada.Sees("Reveal the cards now?", "Without a card: Ben (away).")
	ada.Press("Cancel")
	ada.SeesNo("Reveal the cards now?")
	ada.Sees("1 of 2 have picked")
	ada.Press("Reveal the cards")
	ada.Press("Reveal now")
	ada.Sees("Average 5", "no card, away")

	ben.Open(s.URL() + path)
	ben.Sees("Average 5", "no card")
	ada.SeesNo("away")
}

func TestARoundIsNotWipedWithoutAQuestion(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada, ben := chromium.User(t, "Ada"), chromium.User(t, "Ben")
	path := open(ada, s.URL(), "Sprint 12")
	enter(ada, s.URL()+path, "Ada")
	enter(ben, s.URL()+path, "Ben")
	ada.Press("5")
	ben.Sees("1 of 2 have picked")
	primary := func(id string) bool {
		return browsertest.Evaluate[bool](ben, `document.getElementById("`+id+`").classList.contains("primary")`)
	}
	assert.True(t, primary("reveal"))
	assert.False(t, primary("refresh"))

	ben.Press("Refresh the table")
	ben.Sees("Refresh the table?", "1 of 2 have picked. Their cards are taken back unseen, and round 2 begins.")
	ben.Press("Cancel")
	ben.SeesNo("Refresh the table?")
	ben.Press("Refresh the table")
	ben.Sees("Refresh the table?")
	nextRound(ada, "Start round 2")
	for _, u := range []*browsertest.User{ada, ben} {
		u.Sees("Round 2", "0 of 2 have picked")
	}
	ben.SeesNo("Refresh the table?") // there is nothing left to ask

	ben.Press("Refresh the table") // nor here
	ada.Press("5")
	ben.Press("8")
	ben.Sees("Average 6.5")
	assert.NotContains(t, ben.Text(), "Refresh the table?")
	ben.Press("Refresh the table")
	ben.Sees("The cards on the table are taken back, and round 3 begins.")
	ben.Press("Start round 3")
	ada.Sees("Round 3", "0 of 2 have picked")
}

func TestAFormSaysInPlainWordsWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := serve(t, dynamotest.New(t).Client(), service.Config{})
	ada := chromium.User(t, "Ada")
	ada.Expects("status 400")
	ada.Open(s.URL())
	ada.Type("Room name", "  ")
	ada.Press("Open the room")
	ada.Sees("The name of a room needs 1 to 80 characters that can be seen, on one line.")
	ada.Type("Room name", "Sprint 12")
	ada.Choose("Deck", "own")
	ada.Type("Your cards, with spaces between", "1 1")
	ada.Press("Open the room")
	ada.Sees("A deck has 2 to 20 different cards.")
}
