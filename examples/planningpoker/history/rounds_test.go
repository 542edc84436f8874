package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/examples/planningpoker/history"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
)

var began = time.Date(2024, 5, 1, 9, 30, 0, 0, time.UTC)

// after returns the time of an event by its number. Events are one minute apart.
func after(number int) time.Time { return began.Add(time.Duration(number) * time.Minute) }

func opened(title string) room.Opened { return room.Opened{Name: "Sprint 12", Title: title} }

func joined(user, name string) room.Joined { return room.Joined{UserID: user, Name: name} }

func picked(user, card string) room.Picked { return room.Picked{UserID: user, Card: card} }

func next(title string) room.TableRefreshed { return room.TableRefreshed{Title: title} }

func fold(events ...room.Event) []history.Round {
	var rounds history.Rounds
	for i, e := range events {
		rounds.Apply(e, after(i+1))
	}
	return rounds.Newest()
}

func TestEventsAreFoldedIntoRounds(t *testing.T) {
	t.Parallel()
	ada, ben := joined("a", "Ada"), joined("b", "Ben")
	for name, c := range map[string]struct {
		events []room.Event
		want   []history.Round
	}{
		"no events": {},
		"a round that goes on": {
			events: []room.Event{opened("Log in"), ada, ben, picked("a", "5")},
		},
		"a revealed round": {
			events: []room.Event{opened("Log in"), ada, ben, picked("b", "8"), picked("a", "5"), room.Revealed{}},
			want: []history.Round{{
				Number: 1, Title: "Log in", RevealedAt: after(6), Picks: []history.Pick{{"b", "Ben", "8"}, {"a", "Ada", "5"}},
			}},
		},
		"a round without a story": {
			events: []room.Event{opened(""), ada, picked("a", "5"), room.Revealed{}},
			want:   []history.Round{{Number: 1, RevealedAt: after(4), Picks: []history.Pick{{"a", "Ada", "5"}}}},
		},
		"a round that ended before its reveal": {
			events: []room.Event{opened("Log in"), ada, ben, picked("a", "5"), next("Log out")},
			want:   []history.Round{{Number: 1, Title: "Log in"}},
		},
		"the newest round first": {
			events: []room.Event{
				opened("Log in"), ada, picked("a", "5"), room.Revealed{}, next(""), picked("a", "8"), next("Log out"), picked("a", "3"), room.Revealed{},
			},
			want: []history.Round{
				{Number: 3, Title: "Log out", RevealedAt: after(9), Picks: []history.Pick{{"a", "Ada", "3"}}},
				{Number: 2},
				{Number: 1, Title: "Log in", RevealedAt: after(4), Picks: []history.Pick{{"a", "Ada", "5"}}},
			},
		},
		"the last of several picks": {
			events: []room.Event{opened(""), ada, ben, picked("a", "5"), picked("b", "5"), picked("a", "8"), room.Revealed{By: "b"}},
			want:   []history.Round{{Number: 1, RevealedAt: after(7), Picks: []history.Pick{{"a", "Ada", "8"}, {"b", "Ben", "5"}}}},
		},
		"members who left after the reveal": {
			events: []room.Event{
				opened(""), ada, ben, picked("a", "5"), picked("b", "8"), room.Revealed{}, room.Left{UserID: "a"}, room.Kicked{UserID: "b", By: "a"},
			},
			want: []history.Round{{Number: 1, RevealedAt: after(6), Picks: []history.Pick{{"a", "Ada", "5"}, {"b", "Ben", "8"}}}},
		},
		"members who left before the reveal": {
			events: []room.Event{
				opened(""), ada, ben, joined("c", "Cleo"), picked("a", "5"), picked("b", "8"), picked("c", "3"),
				room.Left{UserID: "a"},
				room.Kicked{UserID: "b", By: "c"},
				room.Revealed{},
			},
			want: []history.Round{{Number: 1, RevealedAt: after(10), Picks: []history.Pick{{"c", "Cleo", "3"}}}},
		},
		"the name of that time": {
			events: []room.Event{
				opened(""), ada, picked("a", "5"), room.Revealed{}, room.Left{UserID: "a"}, joined("a", "Countess"), next(""), picked("a", "8"), room.Revealed{},
			},
			want: []history.Round{
				{Number: 2, RevealedAt: after(9), Picks: []history.Pick{{"a", "Countess", "8"}}},
				{Number: 1, RevealedAt: after(4), Picks: []history.Pick{{"a", "Ada", "5"}}},
			},
		},
		"cards do not come back in the next round": {
			events: []room.Event{opened(""), ada, ben, picked("a", "5"), next(""), picked("b", "8"), room.Revealed{By: "a"}},
			want:   []history.Round{{Number: 2, RevealedAt: after(7), Picks: []history.Pick{{"b", "Ben", "8"}}}, {Number: 1}},
		},
		"joining and leaving without an opening": {
			events: []room.Event{room.Left{UserID: "a"}, ada, picked("a", "5")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, fold(c.events...))
		})
	}
}

func TestWhatHappensLaterDoesNotChangeAPageThatWasRead(t *testing.T) {
	t.Parallel()
	var rounds history.Rounds
	for i, e := range []room.Event{opened(""), joined("a", "Ada"), joined("b", "Ben"), picked("a", "5"), picked("b", "8"), room.Revealed{}} {
		rounds.Apply(e, after(i+1))
	}
	before := rounds.Newest()
	want := []history.Pick{{"a", "Ada", "5"}, {"b", "Ben", "8"}}
	for _, e := range []room.Event{room.Left{UserID: "a"}, next(""), picked("b", "1"), joined("a", "Eve"), picked("a", "2"), room.Revealed{}} {
		rounds.Apply(e, after(99))
	}
	assert.Equal(t, want, before[0].Picks)
	assert.Equal(t, want, rounds.Newest()[1].Picks)
}

func TestAPageHoldsTheNewestFiftyRounds(t *testing.T) {
	t.Parallel()
	events := []room.Event{opened(""), joined("a", "Ada")}
	for range 120 {
		events = append(events, picked("a", "5"), room.Revealed{}, next(""))
	}
	numbers := func(rounds []history.Round) (first, last, n int) {
		return rounds[0].Number, rounds[len(rounds)-1].Number, len(rounds)
	}
	first, last, n := numbers(fold(events...))
	assert.Equal(t, []int{120, 71, 50}, []int{first, last, n})
	first, last, n = numbers(fold(events[:len(events)-1]...))
	assert.Equal(t, []int{120, 71, 50}, []int{first, last, n}, "where the last round is revealed and goes on")
}
