package console

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// These types are parts of the views of several pages. docs/reference/console-json.md describes
// their JSON.

// aggregateRef names an aggregate.
type aggregateRef struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

func refOf(id aggregate.ID) aggregateRef { return aggregateRef{id.Type, id.Value} }

// eventRef names an event, without its payload and metadata.
type eventRef struct {
	aggregateRef
	Number    uint64    `json:"number"`
	EventType string    `json:"event_type"`
	At        time.Time `json:"at"`
}

func eventRefOf(r *journal.Record) eventRef {
	return eventRef{refOf(r.Aggregate), r.Number, r.EventType, shownTime(r.OccurredAt)}
}

// latest and earliest are the limits of times that JSON can represent. A wrong clock can be beyond
// them.
var (
	latest   = time.Date(9999, time.December, 31, 23, 59, 59, 999e6, time.UTC)
	earliest = time.Date(1, time.January, 1, 0, 0, 0, 1e6, time.UTC) // not the zero time
)

// shownTime returns the time, or the nearest time that JSON can represent.
func shownTime(t time.Time) time.Time {
	switch {
	case t.After(latest):
		return latest
	case t.Before(earliest) && !t.IsZero():
		return earliest
	}
	return t
}

// logText returns a visitor's text for the log. It must not look like another line of the log.
func logText(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// optionalTime returns nil for the zero time, which JSON shows as null or leaves out.
func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = shownTime(t)
	return &t
}
