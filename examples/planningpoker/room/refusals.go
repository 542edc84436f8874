package room

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/examples/internal/text"
)

// These errors refuse a command, for errors.Is. Their texts are shown to users.
var (
	ErrNotFound  = errors.New("there is no such room")
	ErrExists    = errors.New("the room is open already")
	ErrExpired   = errors.New("the room has expired")
	ErrInvalid   = errors.New("invalid")
	ErrNotMember = errors.New("you are not in the room, join it first")
	ErrNotThere  = errors.New("there is no such user in the room")
	ErrFull      = errors.New("the room is full, or too many users have joined so far: open another one")
	ErrRevealed  = errors.New("the cards are revealed, refresh the table to pick again")
	ErrNoCards   = errors.New("nobody has picked a card yet")
	ErrRoundOver = errors.New("the round is over, pick in the current one")
)

// Expired returns an [ErrExpired] for a room that was open until the given time.
func Expired(at time.Time) error {
	return fmt.Errorf("%w: it was open until %s, open a new one", ErrExpired, at.Format(time.RFC3339))
}

// invalidError is an [ErrInvalid] with a text for users.
type invalidError string

func (e invalidError) Error() string        { return string(e) }
func (e invalidError) Is(target error) bool { return target == ErrInvalid }

func invalid(format string, args ...any) error { return invalidError(fmt.Sprintf(format, args...)) }

// titled refuses titles of stories that are too long or have invisible characters. A round needs no
// title.
func titled(title string) error {
	if title != "" && (utf8.RuneCountInString(title) > maxTitle || text.Fault(title) != "") {
		return invalid("the title of a story has at most %d characters, all of which can be seen, on one line", maxTitle)
	}
	return nil
}

// legible refuses names that are empty, too long, or have invisible characters.
func legible(what string, most int, names ...string) error {
	for _, name := range names {
		if utf8.RuneCountInString(name) > most || text.Fault(name) != "" {
			return invalid("%s needs 1 to %d characters that can be seen, on one line", what, most)
		}
	}
	return nil
}
