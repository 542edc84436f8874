package room

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Open opens a room for a lifetime, with the title of the first round's story, or none. Errors:
// [ErrInvalid], [ErrExists], [ErrExpired].
func Open(name, title string, deck []string, lifetime time.Duration, now time.Time) Decision {
	title = strings.TrimSpace(title)
	opened := Opened{name, title, deck, now.Add(lifetime).UTC().Truncate(time.Second)}
	n := len(slices.Compact(slices.Sorted(slices.Values(deck))))
	return func(r Room) (Events, error) {
		switch {
		case r.Round > 0:
			return nil, cmp.Or(r.admit(now), ErrExists)
		case lifetime < minLifetime || lifetime > maxLifetime:
			return nil, invalid("a room is open for %.0f minute to %.0f days", minLifetime.Minutes(), maxLifetime.Hours()/24)
		case n < len(deck) || n < minDeck || n > maxDeck:
			return nil, invalid("a deck has %d to %d different cards", minDeck, maxDeck)
		}
		return Events{opened}, cmp.Or(legible("the name of a room", maxRoomName, name), legible("a card", maxCard, deck...), titled(title))
	}
}

// Visit returns [ErrNotFound] or [ErrExpired] if the room is not open, and no events.
func Visit(now time.Time) Decision {
	return func(r Room) (Events, error) { return nil, r.admit(now) }
}

// Join adds a member. A user who is a member already keeps their name. Errors: [ErrInvalid],
// [ErrFull].
func Join(userID, name string, now time.Time) Decision {
	return func(r Room) (Events, error) {
		switch err := r.admit(now); {
		case err != nil || slices.Contains(r.Members, userID):
			return nil, err
		case len(r.Members) >= maxMembers || r.Joins >= maxJoins:
			return nil, ErrFull
		}
		return Events{Joined{userID, name, r.ExpiresAt}}, legible("your name", maxUserName, name)
	}
}

// Leave removes a member, who may join again.
func Leave(userID string, now time.Time) Decision {
	return func(r Room) (Events, error) {
		if err := r.admit(now); err != nil || !slices.Contains(r.Members, userID) {
			return nil, err
		}
		return r.reveal(Left{userID}), nil
	}
}

// Pick picks a card, or replaces the picked one, in the round that the user saw; 0 means the
// current round. Errors: [ErrNotMember], [ErrRoundOver], [ErrInvalid] for a card that is not in the
// deck, [ErrRevealed].
func Pick(userID, card string, round int, now time.Time) Decision {
	return func(r Room) (Events, error) {
		switch err := r.admit(now, userID); {
		case err != nil:
			return nil, err
		case cmp.Or(round, r.Round) != r.Round:
			return nil, ErrRoundOver
		case !slices.Contains(r.Deck, card):
			return nil, invalid("there is no card %q in the deck", card)
		case r.Cards[userID] == card:
			return nil, nil
		case r.Revealed:
			return nil, ErrRevealed
		}
		return r.reveal(Picked{userID, card}), nil
	}
}

// Reveal shows the cards before all members have picked, in the round that the user saw; 0 means
// the current round. Errors: [ErrNotMember], [ErrNoCards].
func Reveal(userID string, round int, now time.Time) Decision {
	return func(r Room) (Events, error) {
		switch err := r.admit(now, userID); {
		case err != nil || cmp.Or(round, r.Round) != r.Round || r.Revealed:
			return nil, err
		case len(r.Cards) == 0:
			return nil, ErrNoCards
		}
		return Events{Revealed{By: userID}}, nil
	}
}

// Refresh ends the round that the user saw, revealed or not, and starts the next one; 0 means the
// current round. Title is the title of the next story, or empty. A round without cards is ended
// only if the title is another one. Errors: [ErrNotMember], [ErrInvalid] for the title.
func Refresh(userID string, round int, title string, now time.Time) Decision {
	title = strings.TrimSpace(title)
	return func(r Room) (Events, error) {
		unused := len(r.Cards) == 0 && !r.Revealed && (title == "" || title == r.Title)
		if err := r.admit(now, userID); err != nil || cmp.Or(round, r.Round) != r.Round || unused {
			return nil, err
		}
		return Events{TableRefreshed{slices.Clone(r.Members), title}}, titled(title)
	}
}

// Kick removes a member, who may join again. Errors: [ErrNotMember] for the member by,
// [ErrNotThere] for the user.
func Kick(userID, by string, now time.Time) Decision {
	return func(r Room) (Events, error) {
		switch err := r.admit(now, by); {
		case err != nil || slices.Contains(r.Kicked, userID):
			return nil, err
		case !slices.Contains(r.Members, userID):
			return nil, ErrNotThere
		}
		return r.reveal(Kicked{userID, by}), nil
	}
}

// reveal returns an event. If every member has a card after it, Revealed follows.
func (r Room) reveal(happened Event) Events {
	r.Members, r.Cards = slices.Clone(r.Members), maps.Clone(r.Cards)
	happened.Apply(&r)
	if n := len(r.Members); r.Revealed || n == 0 || len(r.Cards) < n {
		return Events{happened}
	}
	return Events{happened, Revealed{}}
}

// admit returns an error if the room is not open, or if one of the users is not a member.
func (r Room) admit(now time.Time, members ...string) error {
	switch {
	case r.Round == 0:
		return ErrNotFound
	case !now.Before(r.ExpiresAt):
		return Expired(r.ExpiresAt)
	case slices.ContainsFunc(members, func(userID string) bool { return !slices.Contains(r.Members, userID) }):
		return ErrNotMember
	}
	return nil
}
