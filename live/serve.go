package live

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Event is one of a stream.
type Event struct {
	Name string
	ID   string // of what is shown, without line ends: the same is not sent again. Default: none, and it is sent in any case
	Data any    // as JSON
	Last bool   // ends the stream
}

func (e Event) encode() ([]byte, error) {
	data, err := json.Marshal(e.Data)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\n", e.Name)
	if e.ID != "" {
		fmt.Fprintf(&b, "id: %s\n", e.ID)
	}
	fmt.Fprintf(&b, "data: %s\n\n", data)
	return b.Bytes(), nil
}

const (
	lookAgain    = 25 * time.Second // whether or not there was a change; also keeps proxies from closing an idle connection
	writeTimeout = 10 * time.Second // a browser that does not read is gone
)

// Serve streams what show returns: at once, after each change, and every 25 seconds in any case,
// but what has an ID only if it is another then. Who comes late or misses something gets what is so
// by now, never an old state; and what has no ID, and says only that there may be news, has its
// page look again.
//
// An error of the first show is returned, and nothing is written. Later ones end the stream, and
// the browser comes again.
func (f *Feed) Serve(w http.ResponseWriter, r *http.Request, key string, show func(context.Context) (Event, error)) error {
	changed, stop := f.Watch(key) // before the first look, so that nothing comes in between
	defer stop()
	event, err := show(r.Context())
	if err != nil {
		return err
	}
	shown, err := event.encode()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // of nginx, which would hold events back
	s := stream{w: w, control: http.NewResponseController(w)}
	tick := time.NewTicker(f.lookAgain)
	defer tick.Stop()
	for next := append([]byte("retry: 1000\n\n"), shown...); s.send(next) && !event.Last; {
		select {
		case <-r.Context().Done():
			return nil
		case _, open := <-changed:
			if !open {
				return nil
			}
		case <-tick.C:
		}
		if event, err = show(r.Context()); err == nil {
			next, err = event.encode()
		}
		switch {
		case err != nil:
			return nil // the reply has begun
		case event.ID != "" && bytes.Equal(next, shown):
			next = []byte(": still there\n\n")
		default:
			shown = next
		}
	}
	return nil
}

type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s stream) send(text []byte) bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // where it is not supported there is none
	if _, err := s.w.Write(text); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
