package room_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
)

var (
	now    = time.Date(2024, 5, 1, 9, 30, 0, 250_000_000, time.UTC)
	closes = time.Date(2024, 5, 1, 10, 30, 0, 0, time.UTC)
	deck   = []string{"1", "2", "3", "☕"}
	opened = room.Opened{Name: "Sprint 12", Deck: deck, ExpiresAt: closes}
	ada    = joined("ada")
	bob    = joined("bob")
)

func joined(user string) room.Joined {
	return room.Joined{UserID: user, Name: strings.ToUpper(user), ExpiresAt: closes}
}

func picked(user, card string) room.Picked { return room.Picked{UserID: user, Card: card} }

func given(t *testing.T, events ...room.Event) *aggregatetest.Scenario[room.Room] {
	t.Helper()
	return aggregatetest.Given(t, room.Definition, events...)
}

func TestATeamPlaysARound(t *testing.T) {
	t.Parallel()
	given(t).
		When(room.Open("Sprint 12", "", deck, time.Hour, now)).Then(opened).
		When(room.Join("ada", "ADA", now)).Then(ada).
		When(room.Join("bob", "BOB", now)).Then(bob).
		When(room.Pick("ada", "3", 0, now)).Then(picked("ada", "3")).
		When(room.Pick("ada", "2", 0, now)).Then(picked("ada", "2")).
		When(room.Pick("bob", "☕", 0, now)).Then(picked("bob", "☕"), room.Revealed{}).
		ThenState(room.Room{
			Name: "Sprint 12", Deck: deck, ExpiresAt: closes, Round: 1, Revealed: true, Members: []string{"ada", "bob"}, Joins: 2,
			Cards: map[string]string{"ada": "2", "bob": "☕"},
		}).
		When(room.Refresh("bob", 0, "", now)).Then(room.TableRefreshed{UserIDs: []string{"ada", "bob"}}).
		ThenState(room.Room{
			Name: "Sprint 12", Deck: deck, ExpiresAt: closes, Round: 2, Members: []string{"ada", "bob"}, Joins: 2,
		})
}

func TestARoomIsOpenedOnce(t *testing.T) {
	t.Parallel()
	given(t, opened).When(room.Open("again", "", deck, time.Hour, now)).ThenError(room.ErrExists)
}

func TestARoomIsOpenedWithinItsLimits(t *testing.T) {
	t.Parallel()
	many := func(n int) (cards []string) {
		for i := range n {
			cards = append(cards, fmt.Sprint(i))
		}
		return cards
	}
	longest := strings.Repeat("部", 80)
	for name, open := range map[string]room.Decision{
		"no name":             room.Open("", "", deck, time.Hour, now),
		"a blank name":        room.Open(" \t", "", deck, time.Hour, now),
		"a name of two lines": room.Open("Sprint\n12", "", deck, time.Hour, now),
		"a long name":         room.Open(longest+"x", "", deck, time.Hour, now),
		"no deck":             room.Open("x", "", nil, time.Hour, now),
		"a deck of one":       room.Open("x", "", many(1), time.Hour, now),
		"a deck of many":      room.Open("x", "", many(20+1), time.Hour, now),
		"a card twice":        room.Open("x", "", []string{"1", "2", "1"}, time.Hour, now),
		"a card without text": room.Open("x", "", []string{"1", ""}, time.Hour, now),
		"a long card":         room.Open("x", "", []string{"1", "123456789"}, time.Hour, now),
		"a short life":        room.Open("x", "", deck, time.Minute-1, now),
		"a long life":         room.Open("x", "", deck, 7*24*time.Hour+1, now),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given(t).When(open).ThenError(room.ErrInvalid)
		})
	}
	given(t).When(room.Open(longest, "", many(20), 7*24*time.Hour, now)).Then(room.Opened{
		Name: longest, Deck: many(20), ExpiresAt: now.Add(7 * 24 * time.Hour).Truncate(time.Second),
	})
}

func TestWhoJoinsHasAName(t *testing.T) {
	t.Parallel()
	given(t, opened).When(room.Join("ada", " ", now)).ThenError(room.ErrInvalid)
	given(t, opened).When(room.Join("ada", strings.Repeat("x", 40+1), now)).ThenError(room.ErrInvalid)
}

func TestAUserIsToldWhatIsInvalidInTheirOwnTerms(t *testing.T) {
	t.Parallel()
	for reason, refused := range map[string]room.Decision{
		"the name of a room needs 1 to 80 characters that can be seen, on one line": room.Open(" ", "", deck, time.Hour, now),
		"a card needs 1 to 8 characters that can be seen, on one line":              room.Open("x", "", []string{"1", ""}, time.Hour, now),
		"a deck has 2 to 20 different cards":                                        room.Open("x", "", []string{"1", "1"}, time.Hour, now),
		"a room is open for 1 minute to 7 days":                                     room.Open("x", "", deck, time.Second, now),
	} {
		given(t).When(refused).ThenErrorFunc(func(t testing.TB, err error) { assert.EqualError(t, err, reason) })
	}
	given(t, opened).When(room.Join("ada", "", now)).ThenErrorFunc(func(t testing.TB, err error) {
		assert.EqualError(t, err, "your name needs 1 to 40 characters that can be seen, on one line")
	})
}

func TestANameIsSeenAsItIs(t *testing.T) {
	t.Parallel()
	for what, name := range map[string]string{
		"a space of no width":        "\u200b",
		"a joiner alone":             "\u200d",
		"a variation selector alone": "\ufe0f",
		"an accent alone":            "\u0301",
		"a filler":                   "\u3164",
		"no-break spaces":            "\u00a0\u2003",
		"what turns the text round":  "\u202eadA",
		"an isolate":                 "\u2066Ada",
		"a hidden space":             "A\u200bda",
		"a byte order mark":          "\ufeffAda",
		"a line separator":           "A\u2028da",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			given(t, opened).When(room.Join("ada", name, now)).ThenError(room.ErrInvalid)
		})
	}
	for _, name := range []string{"Zoë", "Zoe\u0308", "👩\u200d💻", "❤\ufe0f", "\u0645\u06cc\u200c\u0634\u0648\u062f", "नेहा", "李 明", "?"} {
		given(t, opened).When(room.Join("ada", name, now)).Then(room.Joined{UserID: "ada", Name: name, ExpiresAt: closes})
	}
}

func TestARoomHasNoMoreMembersThanItCanHold(t *testing.T) {
	t.Parallel()
	full := []room.Event{opened}
	for n := range 30 {
		full = append(full, joined(fmt.Sprint("user-", n)))
	}
	given(t, full...).
		When(room.Join("ada", "ADA", now)).ThenError(room.ErrFull).
		When(room.Leave("user-0", now)).Then(room.Left{UserID: "user-0"}).
		When(room.Join("ada", "ADA", now)).Then(ada)
}

func TestARoomDoesNotGrowByVisitorsWhoComeAndGo(t *testing.T) {
	t.Parallel()
	visits := []room.Event{opened, ada}
	for n := range 300 - 2 {
		user := fmt.Sprint("user-", n)
		visits = append(visits, joined(user), room.Left{UserID: user})
	}
	given(t, visits...).
		When(room.Join("bob", "BOB", now)).Then(bob).
		When(room.Leave("bob", now)).Then(room.Left{UserID: "bob"}).
		When(room.Join("eve", "EVE", now)).ThenError(room.ErrFull).
		When(room.Join("ada", "ADA", now)).ThenNothing().
		When(room.Pick("ada", "1", 0, now)).Then(picked("ada", "1"), room.Revealed{})
}

func TestWhoLeftMayJoinAgainBehindTheOthers(t *testing.T) {
	t.Parallel()
	given(t, opened, ada, bob, picked("ada", "1")).
		When(room.Leave("ada", now)).Then(room.Left{UserID: "ada"}).
		When(room.Pick("ada", "2", 0, now)).ThenError(room.ErrNotMember).
		When(room.Join("ada", "ADA", now)).Then(ada).
		ThenStateFunc(func(t testing.TB, r room.Room) {
			assert.Equal(t, []string{"bob", "ada"}, r.Members)
			assert.Empty(t, r.Cards, "a card does not come back")
		})
}

func TestWhoWasKickedMayJoinAgain(t *testing.T) {
	t.Parallel()
	given(t, opened, ada, bob).
		When(room.Kick("bob", "ada", now)).Then(room.Kicked{UserID: "bob", By: "ada"}).
		When(room.Pick("bob", "2", 0, now)).ThenError(room.ErrNotMember).
		When(room.Kick("bob", "ada", now)).ThenNothing().
		When(room.Join("bob", "BOB", now)).Then(bob).
		When(room.Pick("bob", "2", 0, now)).Then(picked("bob", "2")).
		When(room.Kick("bob", "ada", now)).Then(room.Kicked{UserID: "bob", By: "ada"})
}

func TestAMemberRevealsBeforeAllHavePicked(t *testing.T) {
	t.Parallel()
	given(t, opened, ada, bob, picked("ada", "1")).
		When(room.Reveal("bob", 1, now)).Then(room.Revealed{By: "bob"}).
		When(room.Pick("bob", "2", 0, now)).ThenError(room.ErrRevealed).
		When(room.Refresh("ada", 1, "", now)).Then(room.TableRefreshed{UserIDs: []string{"ada", "bob"}}).
		When(room.Pick("bob", "2", 0, now)).Then(picked("bob", "2")).
		When(room.Reveal("ada", 0, now)).Then(room.Revealed{By: "ada"})
}

func TestATableWithoutCardsIsNotRevealed(t *testing.T) {
	t.Parallel()
	given(t, opened, ada, bob).
		When(room.Reveal("ada", 1, now)).ThenError(room.ErrNoCards)
	given(t, opened, ada, bob, picked("ada", "1"), room.Left{UserID: "ada"}, ada).
		When(room.Reveal("ada", 1, now)).ThenError(room.ErrNoCards)
}

func TestAnOldRevealedEventIsReadAsOneThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	event, err := room.Definition.Decode("room.revealed.v1", []byte(`{}`))
	require.NoError(t, err)
	assert.Equal(t, room.Revealed{}, event)
}

func TestOnlyMembersPickRevealRefreshAndKick(t *testing.T) {
	t.Parallel()
	given(t, opened, ada).
		When(room.Pick("eve", "1", 0, now)).ThenError(room.ErrNotMember).
		When(room.Reveal("eve", 0, now)).ThenError(room.ErrNotMember).
		When(room.Refresh("eve", 0, "", now)).ThenError(room.ErrNotMember).
		When(room.Kick("ada", "eve", now)).ThenError(room.ErrNotMember)
}

func TestNobodyIsKickedWhoIsNotThere(t *testing.T) {
	t.Parallel()
	given(t, opened, ada).When(room.Kick("eve", "ada", now)).ThenError(room.ErrNotThere)
	given(t, opened, ada, bob, room.Left{UserID: "bob"}).When(room.Kick("bob", "ada", now)).ThenError(room.ErrNotThere)
}

func TestOnlyCardsOfTheDeckArePicked(t *testing.T) {
	t.Parallel()
	given(t, opened, ada).
		When(room.Pick("ada", "4", 0, now)).ThenError(room.ErrInvalid).
		When(room.Pick("ada", "", 0, now)).ThenError(room.ErrInvalid)
}

func TestTheCardsAreRevealedWhenTheLastWithoutOneGoes(t *testing.T) {
	t.Parallel()
	given(t, opened, ada, bob, picked("ada", "1")).
		When(room.Leave("bob", now)).Then(room.Left{UserID: "bob"}, room.Revealed{})
	given(t, opened, ada, bob, picked("ada", "1")).
		When(room.Kick("bob", "ada", now)).Then(room.Kicked{UserID: "bob", By: "ada"}, room.Revealed{})
	given(t, opened, ada).
		When(room.Leave("ada", now)).Then(room.Left{UserID: "ada"})
	given(t, opened, ada, bob, joined("eve"), picked("ada", "1")).
		When(room.Leave("bob", now)).Then(room.Left{UserID: "bob"})
}

func TestRevealedCardsStayUntilTheTableIsRefreshed(t *testing.T) {
	t.Parallel()
	given(t, opened, ada, picked("ada", "1"), room.Revealed{}).
		When(room.Pick("ada", "2", 0, now)).ThenError(room.ErrRevealed).
		When(room.Join("bob", "BOB", now)).Then(bob).
		When(room.Pick("bob", "2", 0, now)).ThenError(room.ErrRevealed).
		When(room.Leave("bob", now)).Then(room.Left{UserID: "bob"}).
		ThenStateFunc(func(t testing.TB, r room.Room) { assert.True(t, r.Revealed) }).
		When(room.Refresh("ada", 0, "", now)).Then(room.TableRefreshed{UserIDs: []string{"ada"}}).
		When(room.Pick("ada", "2", 0, now)).Then(picked("ada", "2"), room.Revealed{})
}

func TestATableIsRefreshedBeforeAllHavePicked(t *testing.T) {
	t.Parallel()
	given(t, opened, ada, bob, picked("ada", "1")).
		When(room.Refresh("bob", 0, "", now)).Then(room.TableRefreshed{UserIDs: []string{"ada", "bob"}})
}

func TestWhatWasMeantForARoundDoesNothingToTheNextOne(t *testing.T) {
	t.Parallel()
	given(t, opened, ada, bob, picked("ada", "1"), picked("bob", "2"), room.Revealed{}).
		When(room.Pick("ada", "2", 2, now)).ThenError(room.ErrRoundOver).
		When(room.Refresh("ada", 1, "", now)).Then(room.TableRefreshed{UserIDs: []string{"ada", "bob"}}).
		When(room.Pick("ada", "3", 2, now)).Then(picked("ada", "3")).
		When(room.Refresh("bob", 1, "", now)).ThenNothing().
		When(room.Refresh("ada", 1, "", now)).ThenNothing().
		When(room.Reveal("bob", 1, now)).ThenNothing().
		When(room.Pick("bob", "2", 1, now)).ThenError(room.ErrRoundOver).
		When(room.Pick("ada", "3", 1, now)).ThenError(room.ErrRoundOver).
		When(room.Refresh("bob", 2, "", now)).Then(room.TableRefreshed{UserIDs: []string{"ada", "bob"}})
}

func TestACommandThatAsksForWhatIsSoChangesNothing(t *testing.T) {
	t.Parallel()
	given(t, opened, ada).When(room.Join("ada", "ADA", now)).ThenNothing()
	given(t, opened, ada).When(room.Join("ada", "Ada L.", now)).ThenNothing()
	given(t, opened, ada).When(room.Leave("bob", now)).ThenNothing()
	given(t, opened, ada, bob, picked("ada", "1")).When(room.Pick("ada", "1", 0, now)).ThenNothing()
	given(t, opened, ada, picked("ada", "1"), room.Revealed{}).When(room.Pick("ada", "1", 0, now)).ThenNothing()
	given(t, opened, ada).When(room.Refresh("ada", 0, "", now)).ThenNothing()
	given(t, opened, ada, picked("ada", "1"), room.Revealed{}).When(room.Reveal("ada", 0, now)).ThenNothing()
	given(t, opened, ada).When(room.Visit(now)).ThenNothing()
	given(t, opened, ada, bob, room.Kicked{UserID: "bob", By: "ada"}).When(room.Kick("bob", "ada", now)).ThenNothing()
}

func commands(at time.Time) map[string]room.Decision {
	return map[string]room.Decision{
		"join": room.Join("eve", "EVE", at), "leave": room.Leave("ada", at), "pick": room.Pick("ada", "1", 0, at),
		"reveal": room.Reveal("ada", 0, at), "refresh": room.Refresh("ada", 0, "", at), "visit": room.Visit(at), "kick": room.Kick("bob", "ada", at),
	}
}

func TestARoomThatWasNeverOpenedIsNotFound(t *testing.T) {
	t.Parallel()
	for name, command := range commands(now) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given(t).When(command).ThenError(room.ErrNotFound)
		})
	}
}

func TestNothingHappensInARoomThatHasExpired(t *testing.T) {
	t.Parallel()
	expired := commands(closes)
	expired["open"] = room.Open("again", "", deck, time.Hour, closes)
	for name, command := range expired {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given(t, opened, ada, bob, picked("bob", "1")).When(command).ThenErrorFunc(func(t testing.TB, err error) {
				assert.ErrorIs(t, err, room.ErrExpired)
				assert.ErrorContains(t, err, "2024-05-01T10:30:00Z")
			})
		})
	}
	given(t, opened).When(room.Join("ada", "ADA", closes.Add(-1))).Then(ada)
}
