package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Update is a server-sent event of a stream.
type Update struct {
	// Name is the type of the event, for which the client listens. Default: "message".
	Name string
	// ID identifies the state that the event shows, such as a version. An event with an ID is sent
	// only if its name, id or data differ from the last event. An event without an ID is always
	// sent.
	ID string
	// Data is the content of the event. It is sent as JSON.
	Data any
	// Last ends the stream after the event. The page should then close its EventSource; otherwise
	// the browser reconnects.
	Last bool
}

func (e Update) encode() ([]byte, error) {
	if strings.ContainsAny(e.Name, "\r\n") || strings.ContainsAny(e.ID, "\r\n\x00") {
		return nil, fmt.Errorf("event %q with id %q: a name or id must be one line, without NUL", e.Name, e.ID)
	}
	data, err := json.Marshal(e.Data)
	if err != nil {
		return nil, fmt.Errorf("event %q: %w", e.Name, err)
	}
	var b bytes.Buffer
	if e.Name != "" {
		fmt.Fprintf(&b, "event: %s\n", e.Name)
	}
	if e.ID != "" {
		fmt.Fprintf(&b, "id: %s\n", e.ID)
	}
	fmt.Fprintf(&b, "data: %s\n\n", data)
	return b.Bytes(), nil
}
