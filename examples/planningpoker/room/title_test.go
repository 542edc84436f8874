package room_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/examples/planningpoker/room"
)

func TestARoundIsAboutAStory(t *testing.T) {
	t.Parallel()
	title := func(want string) func(testing.TB, room.Room) {
		return func(t testing.TB, r room.Room) { assert.Equal(t, want, r.Title) }
	}
	given(t).
		When(room.Open("Sprint 12", " Log in\n", deck, time.Hour, now)).
		Then(room.Opened{Name: "Sprint 12", Title: "Log in", Deck: deck, ExpiresAt: closes}).
		ThenStateFunc(title("Log in"))
	given(t, opened, ada, picked("ada", "1"), room.Revealed{}).
		ThenStateFunc(title("")).
		When(room.Refresh("ada", 1, "\tLog out ", now)).
		Then(room.TableRefreshed{UserIDs: []string{"ada"}, Title: "Log out"}).
		ThenStateFunc(title("Log out")).
		When(room.Pick("ada", "1", 2, now)).Then(picked("ada", "1"), room.Revealed{}).
		When(room.Refresh("ada", 2, "", now)).Then(room.TableRefreshed{UserIDs: []string{"ada"}}).
		ThenStateFunc(title(""))
}

func TestATableWithoutCardsIsRefreshedForAnotherStoryOnly(t *testing.T) {
	t.Parallel()
	given(t, opened, ada).
		When(room.Refresh("ada", 1, "", now)).ThenNothing().
		When(room.Refresh("ada", 1, "Log in", now)).Then(room.TableRefreshed{UserIDs: []string{"ada"}, Title: "Log in"}).
		When(room.Refresh("ada", 2, "Log in", now)).ThenNothing().
		When(room.Refresh("ada", 2, "", now)).ThenNothing().
		When(room.Refresh("ada", 1, "Log out", now)).ThenNothing()
}

func TestATitleIsShortAndSeenAsItIs(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("部", 200)
	for what, title := range map[string]string{
		"too long": longest + "x", "two lines": "Log\nin", "a control character": "Log\x00in",
		"what turns the text round": "\u202eni goL", "invisible": "\u200b", "no UTF-8": "\xff",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			refused := func(t testing.TB, err error) {
				assert.ErrorIs(t, err, room.ErrInvalid)
				assert.EqualError(t, err, "the title of a story has at most 200 characters, all of which can be seen, on one line")
			}
			given(t).When(room.Open("Sprint 12", title, deck, time.Hour, now)).ThenErrorFunc(refused)
			given(t, opened, ada, picked("ada", "1")).When(room.Refresh("ada", 1, title, now)).ThenErrorFunc(refused)
		})
	}
	given(t, opened, ada, picked("ada", "1")).
		When(room.Refresh("ada", 1, longest, now)).Then(room.TableRefreshed{UserIDs: []string{"ada"}, Title: longest})
}

// A program without stories stored these events.
func TestARoomFromBeforeThereWereStoriesHasRoundsWithoutOne(t *testing.T) {
	t.Parallel()
	given(t).
		Stored("room.opened.v1", `{"name": "Sprint 12", "deck": ["1", "2", "3", "☕"], "expiresAt": "2024-05-01T10:30:00Z"}`).
		Stored("room.joined.v1", `{"userId": "ada", "name": "ADA", "expiresAt": "2024-05-01T10:30:00Z"}`).
		Stored("room.picked.v1", `{"userId": "ada", "card": "1"}`).
		Stored("room.revealed.v1", `{}`).
		Stored("room.table-refreshed.v1", `{"userIds": ["ada"]}`).
		ThenState(room.Room{
			Name: "Sprint 12", Deck: deck, ExpiresAt: closes, Round: 2, Members: []string{"ada"}, Joins: 1,
		}).
		When(room.Refresh("ada", 2, "Log in", now)).Then(room.TableRefreshed{UserIDs: []string{"ada"}, Title: "Log in"})
}
