package soak

import (
	"encoding/binary"
	"hash/fnv"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
)

// state identifies by its Sum the events that led to it: a missing, repeated or misplaced event
// leads to another Sum.
type state struct {
	Count uint64
	Sum   uint64
	// Recent refers to memory, so that a shared copy is detected.
	Recent []token
	// Ballast makes the state large, sometimes too large for a snapshot.
	Ballast string
}

const recent = 3 // number of tokens in a state

// token is the identity of an event. It is unique. It contains the command of the event, the index
// of the event in the command, and the number of events of the command.
type token uint64

// maxCount is the largest number of events of a command that tokens can represent.
const maxCount = 1<<8 - 1

func tokenOf(command uint64, index, count int) token {
	return token(command<<16 | uint64(index)<<8 | uint64(count)) //nolint:gosec // both are below maxCount
}

func (t token) command() uint64 { return uint64(t) >> 16 }
func (t token) index() int      { return int(t >> 8 & 0xff) }
func (t token) count() int      { return int(t & 0xff) }

// happened is the event of most commands.
type happened struct {
	Token token
	// The size of Text, which is lost with a payload that is cut.
	Size int
	Text string
}

func (happened) EventType() string { return "soak.happened.v1" }
func (e happened) Apply(s *state)  { s.fold(e.Token, e.Size, e.Text) }

// loaded makes the state larger by its text, or removes the text.
type loaded struct {
	Token token
	Size  int
	Text  string
}

func (loaded) EventType() string { return "soak.loaded.v1" }
func (e loaded) Apply(s *state) {
	s.fold(e.Token, e.Size, e.Text)
	if s.Ballast += e.Text; e.Size == 0 {
		s.Ballast = ""
	}
}

var things = aggregate.Define[state]("thing", happened{}, loaded{})

func (s *state) fold(t token, size int, text string) {
	s.Count++
	s.Sum = mix(s.Sum, uint64(t), uint64(size), uint64(len(text)))
	// Changed in place, which is visible if the state shares memory with another.
	if s.Recent = append(s.Recent, t); len(s.Recent) > recent {
		copy(s.Recent, s.Recent[1:])
		s.Recent = s.Recent[:recent]
	}
}

// digest returns a number that depends on the whole state.
func (s *state) digest() uint64 {
	parts := []uint64{s.Count, s.Sum, uint64(len(s.Ballast))}
	for _, t := range s.Recent {
		parts = append(parts, uint64(t))
	}
	return mix(parts...)
}

func mix(parts ...uint64) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint64(b[:], p)
		_, _ = h.Write(b[:])
	}
	return h.Sum64()
}

// newEvent returns the event of a token.
func newEvent(t token, size int, ballast bool) aggregate.Event[state] {
	text := strings.Repeat(string(rune('a'+t%26)), size)
	if ballast {
		return loaded{Token: t, Size: size, Text: text}
	}
	return happened{Token: t, Size: size, Text: text}
}
