package live_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/repository"
)

// Room is an aggregate.
type Room struct{}

// Entered is its event.
type Entered struct{ Room, Name string }

func (Entered) EventType() string { return "room.entered.v1" }
func (Entered) Apply(*Room)       {}

// view is the read model: the names of the people in each room. A read model in a table works the
// same way.
type view struct {
	mu    sync.Mutex
	names map[string][]string
}

func (v *view) apply(_ context.Context, e *Entered) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.names[e.Room] = append(v.names[e.Room], e.Name)
	return nil
}

func (v *view) query(room string) (live.Update, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	names := v.names[room]
	return live.Update{Name: "names", ID: fmt.Sprint(len(names)), Data: names}, nil
}

// A client receives the names of the people in a room, and receives them again after each change.
func Example() {
	client := dynamotest.Open().Client() // any *dynamodb.Client
	ctx, stop := context.WithCancel(context.Background())
	app, err := millrace.Open(ctx, client, millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
	check(err)
	rooms, err := millrace.Repository(app, aggregate.Define[Room]("room", Entered{}), repository.Config{})
	check(err)
	v := &view{names: map[string][]string{}}
	check(app.HandleEvents(millrace.Group{Name: "room-view", Topics: []string{"room"}}, cqrs.NewGroupEventHandler(v.apply)))

	feed, err := live.New(live.Config{Journal: app.Journal(), Group: "room-view", Topics: []string{"room"}})
	check(err)
	check(app.Add(millrace.Service{Name: "live", Run: feed.Run}))

	mux := http.NewServeMux()
	mux.HandleFunc("GET /rooms/{id}/events", func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if err := feed.Serve(w, r, id, func(context.Context) (live.Update, error) { return v.query(id) }); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	server := &http.Server{Handler: mux}
	server.RegisterOnShutdown(func() { _ = feed.Close() }) // streams do not end by themselves
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	check(app.Serve(listener, server))
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()

	// A client. A browser would use EventSource.
	response, err := http.Get("http://" + listener.Addr().String() + "/rooms/42/events")
	check(err)
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		data, isData := strings.CutPrefix(lines.Text(), "data: ")
		if !isData {
			continue
		}
		var names []string
		check(json.Unmarshal([]byte(data), &names))
		fmt.Println(len(names), names)
		if len(names) == 2 {
			break
		}
		name := []string{"Ann", "Bob"}[len(names)]
		_, err := rooms.Execute(ctx, "42", func(Room) (aggregate.Events[Room], error) {
			return aggregate.Events[Room]{Entered{"42", name}}, nil
		})
		check(err)
	}
	stop()
	check(<-ended)

	// Output:
	// 0 []
	// 1 [Ann]
	// 2 [Ann Bob]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
