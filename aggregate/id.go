package aggregate

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/internal/printable"
)

// DynamoDB refuses a sort key of more than 1,024 bytes. The key of an event is
// "{type}-{value}-{sequence number}". A sequence number has at most 20 digits, as the largest
// uint64 has.
const (
	maxSortKeyBytes = 1024
	sequenceDigits  = 20
)

// MaxIDBytes is the maximum length of an id as text, "{type}-{value}", in bytes. With a hyphen and
// a sequence number of up to 20 digits it fits into a sort key of DynamoDB, 1,024 bytes.
const MaxIDBytes = maxSortKeyBytes - len("-") - sequenceDigits

// ID names one aggregate. It is comparable and can be a map key.
//
// The text of an id cannot be split into its parts again: type "user" with value "account-7" and
// type "user-account" with value "7" have the same text. Where both parts are needed, keep both.
type ID struct {
	// Type is the name of the aggregate type, such as "account". It can contain hyphens and no
	// control characters, since it is also a topic and a part of table keys.
	Type string

	// Value identifies one aggregate of the type. It can be any UTF-8 text that is not empty.
	Value string
}

// NewID returns a valid id, or an [*InvalidIDError]. [Definition.ID] does the same for the type of
// the definition.
func NewID(aggregateType, value string) (ID, error) {
	id := ID{Type: aggregateType, Value: value}
	if err := id.Validate(); err != nil {
		return ID{}, err
	}
	return id, nil
}

// Validate returns an [*InvalidIDError] if a part is empty or not UTF-8, if the type has control
// characters, or if the id is longer than [MaxIDBytes].
func (id ID) Validate() error {
	if fault := nameFault(id.Type); fault != "" {
		return &InvalidIDError{ID: id, Reason: "the type " + fault}
	}
	if id.Value == "" {
		return &InvalidIDError{ID: id, Reason: "the value is empty: use a value that names this aggregate alone"}
	}
	if !utf8.ValidString(id.Value) {
		return &InvalidIDError{ID: id, Reason: "the value is not valid UTF-8: encode it as text, in hexadecimal for example"}
	}
	if n := len(id.Type) + len("-") + len(id.Value); n > MaxIDBytes {
		return &InvalidIDError{ID: id, Reason: fmt.Sprintf(
			"type and value make %d bytes, the limit is %d (a DynamoDB sort key has at most %d, and %d are for the "+
				"sequence number): shorten the value by %d bytes or use a digest of it",
			n, MaxIDBytes, maxSortKeyBytes, maxSortKeyBytes-MaxIDBytes, n-MaxIDBytes)}
	}
	return nil
}

// String returns "{type}-{value}", the text under which the journal stores the aggregate.
func (id ID) String() string {
	return id.Type + "-" + id.Value
}

// Format writes the id for package fmt, so that an error or a log can show it. An id that has
// characters that are not printable is quoted as a Go string. Keys are made with [ID.String].
func (id ID) Format(state fmt.State, verb rune) {
	text := id.String()
	if verb != 'q' {
		text, verb = printable.Text(text), 's'
	}
	_, _ = fmt.Fprintf(state, fmt.FormatString(state, verb), text)
}

// nameFault reports what is wrong with the name of an aggregate or event type, and what to do.
// Control characters are refused because such names are parts of keys, topics, logs and metrics.
func nameFault(name string) string {
	if name == "" {
		return "is empty: set a name"
	}
	if !utf8.ValidString(name) {
		return "is not valid UTF-8: use plain text"
	}
	for i, r := range name {
		if unicode.IsControl(r) {
			return fmt.Sprintf("has the control character %U at byte %d: leave it out", r, i)
		}
	}
	return ""
}
