package output

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
)

// timeLayout is RFC 3339 with milliseconds, the precision of the journal.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// Time returns the text of a time in UTC. It is empty for the zero time. RFC 3339 has the years 0
// to 9999. A foreign program may have stored nanoseconds, which lead to a later year; for such a
// time it returns the milliseconds since 1970.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return strconv.FormatInt(t.UnixMilli(), 10) + " ms since 1970"
	}
	return t.UTC().Format(timeLayout)
}

// Count returns the text of a number, with commas between thousands.
func Count[N ~int | ~int64 | ~uint64](n N) string { return humanize.Comma(int64(n)) }

// Bytes returns the text of a size, in units of 1,024.
func Bytes[N ~int | ~int64](n N) string { return humanize.IBytes(uint64(max(n, 0))) }

// Counted returns a number with its noun.
func Counted[N ~int | ~int64 | ~uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Metadata returns keys with their values in the order of keys.
func Metadata(m map[string]string) string {
	texts := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		texts = append(texts, key+"="+m[key])
	}
	return strings.Join(texts, " ")
}

// Payload holds bytes as JSON, as text, or as base64. One field is set, or none if there are no
// bytes.
type Payload struct {
	JSON   json.RawMessage `json:"payload,omitempty"`
	Text   string          `json:"payload_text,omitempty"`
	Base64 []byte          `json:"payload_base64,omitempty"`
}

// PayloadOf returns bytes as a Payload.
func PayloadOf(stored []byte) Payload {
	switch {
	case json.Valid(stored) && utf8.Valid(stored):
		return Payload{JSON: stored}
	case utf8.Valid(stored):
		return Payload{Text: string(stored)}
	default:
		return Payload{Base64: stored}
	}
}

// String returns the payload in one line.
func (p Payload) String() string {
	switch {
	case p.JSON != nil:
		var line bytes.Buffer
		_ = json.Compact(&line, p.JSON) // PayloadOf has checked that it is valid
		return line.String()
	case p.Base64 != nil:
		return "base64:" + base64.StdEncoding.EncodeToString(p.Base64)
	default:
		return p.Text
	}
}
