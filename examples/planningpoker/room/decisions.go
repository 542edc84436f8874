package room

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Open opens a room for some time. Errors: [ErrInvalid], [ErrExists], [ErrExpired].
func Open(name string, deck []string, lifetime time.Duration, now time.Time) Decision {
	opened := Opened{name, deck, now.Add(lifetime).UTC().Truncate(time.Second)}
	n := len(slices.Compact(slices.Sorted(slices.Values(deck))))
	return func(r Room) (Events, error) {
		switch {
		case r.Round > 0:
			return nil, cmp.Or(r.admit(now), ErrExists)
		case lifetime < minLifetime || lifetime > maxLifetime || n < len(deck) || n < minDeck || n > maxDeck:
			return nil, fmt.Errorf("%w: not %s to %s of life, or not %d to %d different cards", ErrInvalid, minLifetime, maxLifetime, minDeck, maxDeck)
		}
		return Events{opened}, cmp.Or(legible(maxRoomName, name), legible(maxCard, deck...))
	}
}

// Join lets somebody in. Who is there already keeps the name they have. Errors: [ErrInvalid],
// [ErrKicked], [ErrFull].
func Join(userID, name string, now time.Time) Decision {
	return func(r Room) (Events, error) {
		switch err := r.admit(now); {
		case err != nil || slices.Contains(r.Members, userID):
			return nil, err
		case slices.Contains(r.Kicked, userID):
			return nil, ErrKicked
		case len(r.Members) >= maxMembers || r.Joins >= maxJoins:
			return nil, ErrFull
		}
		return Events{Joined{userID, name, r.ExpiresAt}}, legible(maxUserName, name)
	}
}

// Leave lets somebody go. They may join again.
func Leave(userID string, now time.Time) Decision {
	return func(r Room) (Events, error) {
		if err := r.admit(now); err != nil || !slices.Contains(r.Members, userID) {
			return nil, err
		}
		return r.reveal(Left{userID}), nil
	}
}

// Pick picks a card, or another one, in the round that the user saw; 0: the present one. Errors:
// [ErrNotMember], [ErrRoundOver], [ErrInvalid] for a card that the deck lacks, [ErrRevealed].
func Pick(userID, card string, round int, now time.Time) Decision {
	return func(r Room) (Events, error) {
		switch err := r.admit(now, userID); {
		case err != nil:
			return nil, err
		case cmp.Or(round, r.Round) != r.Round:
			return nil, ErrRoundOver
		case !slices.Contains(r.Deck, card):
			return nil, fmt.Errorf("%w: there is no card %q in the deck", ErrInvalid, card)
		case r.Cards[userID] == card:
			return nil, nil
		case r.Revealed:
			return nil, ErrRevealed
		}
		return r.reveal(Picked{userID, card}), nil
	}
}

// Refresh takes the cards of the round that the user saw back, revealed or not; 0: the present one.
// Errors: [ErrNotMember].
func Refresh(userID string, round int, now time.Time) Decision {
	return func(r Room) (Events, error) {
		if err := r.admit(now, userID); err != nil || cmp.Or(round, r.Round) != r.Round || len(r.Cards) == 0 && !r.Revealed {
			return nil, err
		}
		return Events{TableRefreshed{slices.Clone(r.Members)}}, nil
	}
}

// Kick sends a member out for good. Errors: [ErrNotMember] for by, [ErrNotThere] for the user.
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

// reveal adds that the cards are turned over if what happened leaves nobody without one.
func (r Room) reveal(happened Event) Events {
	r.Members, r.Cards = slices.Clone(r.Members), maps.Clone(r.Cards)
	happened.Apply(&r)
	if n := len(r.Members); r.Revealed || n == 0 || len(r.Cards) < n {
		return Events{happened}
	}
	return Events{happened, Revealed{}}
}

// admit returns why nothing can happen in the room, or not by somebody.
func (r Room) admit(now time.Time, members ...string) error {
	switch {
	case r.Round == 0:
		return ErrNotFound
	case !now.Before(r.ExpiresAt):
		return fmt.Errorf("%w, at %s: its history stays in the journal, open a new one", ErrExpired, r.ExpiresAt.Format(time.RFC3339))
	case slices.ContainsFunc(members, func(userID string) bool { return !slices.Contains(r.Members, userID) }):
		return ErrNotMember
	}
	return nil
}

// legible texts can be seen, are on one line, and do not turn it round. Joiners are let through,
// which emoji and some languages need.
func legible(most int, texts ...string) error {
	blank := []*unicode.RangeTable{unicode.Z, unicode.M, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point}
	tricky := []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp}
	for _, s := range texts {
		seen := strings.TrimFunc(s, func(r rune) bool { return unicode.In(r, blank...) })
		hidden := strings.ContainsFunc(s, func(r rune) bool { return unicode.In(r, tricky...) && !unicode.Is(unicode.Join_Control, r) })
		if len(s) > most || seen == "" || hidden {
			return fmt.Errorf("%w: %.20q is not a text of 1 to %d bytes that can be seen", ErrInvalid, s, most)
		}
	}
	return nil
}
