package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Update is what a stream sends to a client, as a server-sent event.
type Update struct {
	// Name is the type of the event, for which the client listens. Default: "message".
	Name string
	// ID identifies the state that the update shows, such as a version. An update with an ID is
	// sent only if its name, id or data differ from the last one. An update without an ID is always
	// sent.
	ID string
	// Data is the content of the event. It is sent as JSON.
	Data any
	// Last ends the stream after the event. The page should then close its EventSource; otherwise
	// the browser reconnects.
	Last bool
}

func (u Update) encode() ([]byte, error) {
	if strings.ContainsAny(u.Name, "\r\n") || strings.ContainsAny(u.ID, "\r\n\x00") {
		return nil, fmt.Errorf("update %q with id %q: a name or id must be one line, without NUL", u.Name, u.ID)
	}
	data, err := json.Marshal(u.Data)
	if err != nil {
		return nil, fmt.Errorf("update %q: %w", u.Name, err)
	}
	var b bytes.Buffer
	if u.Name != "" {
		fmt.Fprintf(&b, "event: %s\n", u.Name)
	}
	if u.ID != "" {
		fmt.Fprintf(&b, "id: %s\n", u.ID)
	}
	fmt.Fprintf(&b, "data: %s\n\n", data)
	return b.Bytes(), nil
}
