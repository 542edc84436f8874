package console

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// payloadView is a payload, a state or a command. One of JSON, Text, Base64 and Withheld is set, or
// none if the data is empty.
type payloadView struct {
	JSON   json.RawMessage `json:"json,omitempty"`
	Text   string          `json:"text,omitempty"`
	Base64 string          `json:"base64,omitempty"`
	// Withheld is the reason why nothing is shown.
	Withheld string `json:"withheld,omitempty"`
	Bytes    int    `json:"bytes"` // stored size
	// Cut reports that Text has only the beginning. The page of the single event has the whole
	// data.
	Cut bool `json:"cut,omitempty"`
}

// Data returns the shown data as text.
func (p payloadView) Data() []byte {
	if p.JSON != nil {
		return p.JSON
	}
	return []byte(p.Text + p.Base64)
}

// Label returns the format of the payload for the page. It is empty for JSON.
func (p payloadView) Label() string {
	switch {
	case p.Base64 != "":
		return "base64"
	case p.Text != "":
		return "text"
	}
	return ""
}

// mostShown is the maximum number of bytes of each payload and state on a page with many events.
const mostShown = 16 << 10

// mostLevels is the maximum nesting of data that is shown as JSON, and thus indented. Indentation
// makes a deep document many times as large.
const mostLevels = 64

const hidden = "hidden by the console's configuration"

// show returns the view of a payload for a visitor.
func (c *Console) show(p Payload, stored int, full bool) payloadView {
	v := payloadView{Bytes: stored}
	if c.config.HidePayloads {
		v.Withheld = hidden
		return v
	}
	if c.config.Redact != nil {
		if p.Data = c.config.Redact(p); p.Data == nil {
			v.Withheld = hidden
			return v
		}
	}
	switch data := p.Data; {
	case len(data) == 0:
	case levels(data) <= mostLevels && json.Valid(data):
		v.JSON = data
	case utf8.Valid(data):
		v.Text = string(data)
	default:
		v.Base64 = base64.StdEncoding.EncodeToString(data)
	}
	if n := len(v.Data()); n > mostShown && !full {
		v.Text, v.JSON, v.Base64, v.Cut = string(v.Data()[:mostShown]), nil, "", true
		v.Text = strings.ToValidUTF8(v.Text, "")
	}
	return v
}

// levels returns the nesting of JSON. For other data the result has no meaning.
func levels(data []byte) (deepest int) {
	level, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case quoted && b == '\\':
			i++ // an escaped quote does not end the string
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{', b == '[':
			level++
			deepest = max(deepest, level)
		case b == '}', b == ']':
			level--
		}
	}
	return deepest
}

// eventView is a stored event.
type eventView struct {
	eventRef
	EventID  string            `json:"event_id"`
	Commit   string            `json:"commit"`
	Encoding string            `json:"encoding"`
	Metadata map[string]string `json:"metadata"`
	// MetadataWithheld is the reason why Metadata is not shown.
	MetadataWithheld string      `json:"metadata_withheld,omitempty"`
	Correlation      string      `json:"correlation_id"`
	Causation        string      `json:"causation_id"`
	Payload          payloadView `json:"payload"`
	// Schema is the path of the page of the event type, if the catalogue has it.
	Schema string `json:"schema,omitempty"`

	// State is the state after the event, and Changes are its differences to the state before. Only
	// the page of an aggregate has them.
	State   *payloadView `json:"state,omitempty"`
	Changes []change     `json:"changes,omitempty"`
	// MoreChanges is the number of changes that are not listed.
	MoreChanges int `json:"more_changes,omitempty"`
	// CausedBy is the number of the event that has caused this event. Causes are the numbers of the
	// events that this event has caused. Both include only events of the page.
	CausedBy uint64   `json:"caused_by,omitempty"`
	Causes   []uint64 `json:"causes,omitempty"`
}

// event returns the view of a stored record.
func (c *Console) event(ctx context.Context, r *journal.Record) eventView {
	return c.eventFull(ctx, r, false)
}

// eventFull returns the view of a stored record, with the whole payload if full is true.
func (c *Console) eventFull(ctx context.Context, r *journal.Record, full bool) eventView {
	v := eventView{
		eventRef: eventRefOf(r), EventID: text(r.EventID), Commit: text(r.CommitID), Encoding: r.Encoding,
	}
	v.Metadata, v.MetadataWithheld = c.metadata(r.Aggregate, r.Number, r.EventType, r.Metadata)
	shown := aggregate.Metadata(v.Metadata)
	v.Correlation, v.Causation = shown.CorrelationID(), shown.CausationID()
	v.Schema = c.schemaPath(r.Aggregate.Type, v.EventType)
	plain, err := c.config.Journal.Decode(ctx, r)
	if err != nil {
		v.Payload = payloadView{Bytes: len(r.Payload), Withheld: undecodable(r, err)}
		return v
	}
	v.EventType, v.Schema = plain.EventType, c.schemaPath(r.Aggregate.Type, plain.EventType)
	v.Payload = c.show(Payload{Kind: EventPayload, Aggregate: r.Aggregate, Number: r.Number, Type: plain.EventType, Data: plain.Payload}, len(r.Payload), full)
	return v
}

// undecodable returns the reason why a payload cannot be shown.
func undecodable(r *journal.Record, err error) string {
	switch {
	case errors.Is(err, journal.ErrKeyDestroyed):
		return "encrypted, and its key was destroyed"
	case errors.As(err, new(*journal.EncodingError)):
		return "encoded as " + r.Encoding + ", which this console cannot decode"
	}
	return err.Error()
}

// metadata returns the metadata for a visitor, or the reason why they are not shown.
func (c *Console) metadata(id aggregate.ID, number uint64, eventType string, m aggregate.Metadata) (shown map[string]string, withheld string) {
	shown = map[string]string{}
	if len(m) == 0 {
		return shown, ""
	}
	if c.config.HidePayloads {
		return shown, hidden
	}
	for key, value := range m {
		shown[text(key)] = text(value)
	}
	if c.config.Redact == nil {
		return shown, ""
	}
	data, err := json.Marshal(shown)
	if err != nil {
		return map[string]string{}, err.Error()
	}
	data = c.config.Redact(Payload{Kind: MetadataPayload, Aggregate: id, Number: number, Type: eventType, Data: data})
	shown = map[string]string{}
	if data == nil {
		return shown, hidden
	}
	if err := json.Unmarshal(data, &shown); err != nil {
		return map[string]string{}, "Config.Redact has not returned a JSON object of strings"
	}
	return shown, ""
}

// text returns a string that a page can show for a string of any bytes.
func text(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// state returns the view of a state, and the JSON that may be shown; nil if there is none.
func (c *Console) state(id aggregate.ID, number uint64, state any, full bool) (view payloadView, data []byte) {
	data, err := json.Marshal(state)
	if err != nil {
		return payloadView{Withheld: fmt.Sprintf("cannot be encoded as JSON: %v", err)}, nil
	}
	if levels(data) > mostLevels {
		return payloadView{Bytes: len(data), Withheld: fmt.Sprintf("nested deeper than %d levels", mostLevels)}, nil
	}
	view = c.show(Payload{Kind: StatePayload, Aggregate: id, Number: number, Data: data}, len(data), true)
	data = view.JSON
	if len(data) > mostShown && !full {
		view.Cut, view.JSON, view.Text = true, nil, strings.ToValidUTF8(string(data[:mostShown]), "")
	}
	return view, data
}
