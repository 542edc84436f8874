// Package client plays planning poker by the REST API, as a browser would. Load runs and tests use
// it.
//
//	ada := client.New(server.URL, http.DefaultTransport)
//	id, err := ada.Open(ctx, client.Body{"name": "Sprint 12"})
//	version, err := ada.Do(ctx, id, "join", client.Body{"name": "Ada"})
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"

	"github.com/millrace-dev/millrace/examples/planningpoker/web"
)

// Visitor is a person with a browser.
type Visitor struct {
	server func() string
	http   *http.Client
}

// Body is the body of a POST.
type Body map[string]any

// New returns a visitor. Server returns the URL of a server for each request. Visitors can share a
// transport.
func New(server func() string, transport http.RoundTripper) *Visitor {
	jar, _ := cookiejar.New(nil) // never fails
	return &Visitor{server: server, http: &http.Client{Transport: transport, Jar: jar}}
}

// Problem is a problem document of the API.
type Problem struct {
	Status int
	Title  string
	Detail string
}

func (e *Problem) Error() string { return fmt.Sprintf("%d %s: %s", e.Status, e.Title, e.Detail) }

// Visit fetches the page, which makes the visitor known. Errors: [*Problem].
func (v *Visitor) Visit(ctx context.Context) error {
	response, err := v.send(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// Open opens a room. Body is the body of the request. Errors: [*Problem].
func (v *Visitor) Open(ctx context.Context, body Body) (roomID string, err error) {
	var opened struct{ RoomID string }
	err = v.decode(ctx, http.MethodPost, "/rooms", body, &opened)
	return opened.RoomID, err
}

// Do executes a command, such as "pick" or "pick?wait=true", and returns the version of the room.
// Errors: [*Problem].
func (v *Visitor) Do(ctx context.Context, roomID, command string, body Body) (version uint64, err error) {
	if body == nil {
		body = Body{}
	}
	var done struct{ Version uint64 }
	err = v.decode(ctx, http.MethodPost, "/rooms/"+roomID+"/"+command, body, &done)
	return done.Version, err
}

// Room returns a room as the visitor sees it. Errors: [*Problem].
func (v *Visitor) Room(ctx context.Context, roomID string) (r web.Room, err error) {
	err = v.decode(ctx, http.MethodGet, "/rooms/"+roomID, nil, &r)
	return r, err
}

// History returns a page of the rounds of a room: the rounds before the given one, or the newest
// for 0. Errors: [*Problem].
func (v *Visitor) History(ctx context.Context, roomID string, before int) (h web.History, err error) {
	path := "/rooms/" + roomID + "/history"
	if before > 0 {
		path += fmt.Sprintf("?before=%d", before)
	}
	err = v.decode(ctx, http.MethodGet, path, nil, &h)
	return h, err
}

// Watch calls show with each state of a room that the server sends. It returns nil when show
// returns true, the room is gone, or the stream ends. Errors: [*Problem], those of the connection,
// and the error of ctx.
func (v *Visitor) Watch(ctx context.Context, roomID string, show func(web.Room) (enough bool)) error {
	response, err := v.send(ctx, http.MethodGet, "/rooms/"+roomID+"/events", nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	lines, name := bufio.NewScanner(response.Body), ""
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if event, found := strings.CutPrefix(lines.Text(), "event: "); found {
			name = event
		}
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found || name != "room" {
			continue
		}
		var r web.Room
		if err := json.Unmarshal([]byte(data), &r); err != nil {
			return fmt.Errorf("watch %s: %w", roomID, err)
		}
		if show(r) {
			return nil
		}
	}
	return lines.Err()
}

func (v *Visitor) decode(ctx context.Context, method, path string, body, into any) error {
	response, err := v.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// send returns a successful reply. The caller closes its body.
func (v *Visitor) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, v.server()+path, &content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := v.http.Do(request)
	if err != nil || response.StatusCode < http.StatusBadRequest {
		return response, err
	}
	defer func() { _ = response.Body.Close() }()
	problem := &Problem{}
	if err := json.NewDecoder(response.Body).Decode(problem); err != nil {
		return nil, fmt.Errorf("%s %s: %s without a problem document: %w", method, path, response.Status, err)
	}
	return nil, problem
}
