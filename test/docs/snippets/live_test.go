package snippets

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

type room struct{ Version string }

func queryRoom(_ context.Context, id string) (room, error) {
	if id == "42" {
		return room{Version: "1"}, nil
	}
	return room{}, fmt.Errorf("room %s does not exist", id)
}

func TestAFeedServesARoom(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	mux, server := http.NewServeMux(), &http.Server{ReadHeaderTimeout: time.Second}
	feed, ended := serveRooms(ctx, open(t).j, mux, server)
	listener := httptest.NewServer(mux)
	defer listener.Close()
	assert.Contains(t, firstData(ctx, listener.URL+"/rooms/42/events"), `"Version":"1"`)
	missing := httptest.NewRecorder()
	mux.ServeHTTP(missing, httptest.NewRequest(http.MethodGet, "/rooms/43/events", http.NoBody))
	assert.Equal(t, http.StatusNotFound, missing.Code)
	<-feed.Running()
	check(server.Shutdown(ctx))
	check(<-ended)
}

func serveRooms(ctx context.Context, j *journal.Journal, mux *http.ServeMux, server *http.Server) (*live.Feed, chan error) {
	feed, err := live.New(live.Config{Journal: j, Group: "room-view", Topics: []string{"room"}})
	check(err)
	ended := make(chan error, 1)
	go func() { ended <- feed.Run(ctx) }()

	mux.HandleFunc("GET /rooms/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		err := feed.Serve(w, r, id, func(ctx context.Context) (live.Update, error) {
			room, err := queryRoom(ctx, id)
			return live.Update{Name: "room", ID: room.Version, Data: room}, err
		})
		if err != nil {
			http.Error(w, "no such room", http.StatusNotFound)
		}
	})
	server.RegisterOnShutdown(func() { _ = feed.Close() })
	return feed, ended
}

// firstData returns the data of the first event of a stream.
func firstData(ctx context.Context, url string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	check(err)
	response, err := http.DefaultClient.Do(request)
	check(err)
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return data
		}
	}
	return ""
}

func TestAnAppServesAFeed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	app, err := millrace.Open(ctx, dynamotest.New(t).Client(), millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
	check(err)
	check(app.HandleEvents(millrace.Group{Name: "room-view", Topics: []string{"room"}},
		cqrs.NewGroupEventHandler(func(context.Context, *Deposited) error { return nil })))
	mux := http.NewServeMux()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	serveApp(app, mux, server, listener)
	stop, err := app.Start(ctx)
	check(err)
	assert.Contains(t, firstData(ctx, "http://"+listener.Addr().String()+"/rooms/42/events"), `"Version":"1"`)
	check(stop())
}

func serveApp(app *millrace.App, mux *http.ServeMux, server *http.Server, listener net.Listener) {
	// A group of the App; its topics are those of the feed.
	feed, err := app.Live(live.Config{Group: "room-view"})
	check(err)
	mux.HandleFunc("GET /rooms/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		err := feed.Serve(w, r, id, func(ctx context.Context) (live.Update, error) {
			room, err := queryRoom(ctx, id)
			return live.Update{Name: "room", ID: room.Version, Data: room}, err
		})
		if err != nil {
			http.Error(w, "no such room", http.StatusNotFound)
		}
	})
	check(app.Serve(listener, server))
}

// liveTotals returns a feed for a read model in an SQL database.
func liveTotals(j *journal.Journal, store *sqlprojection.Store) *live.Feed {
	g := groups.New(j, groups.WithPositions(store))
	feed, err := live.New(live.Config{
		Journal: j, Topics: []string{"account"},
		Wait: func(ctx context.Context, r *journal.Record) error {
			return g.WaitApplied(ctx, "totals", r.Aggregate, r.Number)
		},
	})
	check(err)
	return feed
}
