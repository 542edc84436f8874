package live_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience limits the time that a test waits before it fails. It says nothing about speed.
const patience = 2 * time.Minute

type counter struct{ N int }

type added struct{}

func (added) EventType() string { return "counter.added.v1" }
func (added) Apply(c *counter)  { c.N++ }

var counters = aggregate.Define[counter]("counter", added{})

func add(counter) (aggregate.Events[counter], error) {
	return aggregate.Events[counter]{added{}}, nil
}

func idOf(value string) aggregate.ID { return aggregate.ID{Type: "counter", Value: value} }

// fixture is a journal with a read model. The read model is the position of its group.
type fixture struct {
	t       *testing.T
	client  *dynamodb.Client
	journal *journal.Journal
	repo    *repository.Repository[counter]
}

func setup(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, client: testdb.Client(t)}
	require.NoError(t, journal.Create(t.Context(), f.client, journal.Config{Layout: journal.Classic, Shards: 2}))
	f.journal = f.open()
	f.repo = testjournal.Repository(t, f.journal, counters, repository.Config{})
	return f
}

// open opens the journal again, like another process.
func (f *fixture) open() *journal.Journal {
	f.t.Helper()
	return testjournal.Open(f.t, f.client, journal.Config{})
}

func (f *fixture) add(id string) {
	f.t.Helper()
	testjournal.Execute(f.t, f.repo, id, add)
}

// model runs the group of the read model. It acks an event for each value that is sent.
func (f *fixture) model() (ack chan<- struct{}) {
	f.t.Helper()
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: f.journal, ConsumerGroup: "model", Timing: subscriber.Timing{CommitInterval: 10 * time.Millisecond},
	}, nil)
	require.NoError(f.t, err)
	messages, err := sub.Subscribe(f.t.Context(), "counter")
	require.NoError(f.t, err)
	tokens, ended := make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(ended)
		for msg := range messages {
			select {
			case <-tokens:
				msg.Ack()
			case <-msg.Context().Done():
			}
		}
	}()
	f.t.Cleanup(func() {
		assert.NoError(f.t, sub.Close())
		<-ended
	})
	return tokens
}

// config returns the config of a feed with the default key, the id of the aggregate. Its time
// limits are so long that only a test that sets one reaches it.
func (f *fixture) config() live.Config {
	return live.Config{
		Journal: f.journal, Group: "model", Topics: []string{"counter"},
		WaitTimeout: time.Hour, RefreshInterval: time.Hour, WriteTimeout: time.Hour,
		Subscriber: subscriber.BroadcastConfig{CloseTimeout: patience},
	}
}

// waiting returns the config of a feed with its own wait.
func (f *fixture) waiting(wait func(context.Context, *journal.Record) error) live.Config {
	config := f.config()
	config.Group, config.Wait = "", wait
	return config
}

func applied(context.Context, *journal.Record) error { return nil }

// feed runs a feed until the test ends.
func (f *fixture) feed(config live.Config) *live.Feed {
	f.t.Helper()
	feed, err := live.New(config)
	require.NoError(f.t, err)
	started, stop := feed.Watch("")
	defer stop()
	f.run(feed)
	await.Receive(f.t, started, "the feed runs") // later watchers are notified of changes only
	return feed
}

func (f *fixture) run(feed *live.Feed) {
	ended := make(chan error, 1)
	go func() { ended <- feed.Run(context.WithoutCancel(f.t.Context())) }()
	f.t.Cleanup(func() {
		assert.NoError(f.t, feed.Close())
		assert.NoError(f.t, <-ended)
	})
}

// browser reads the stream of a feed.
type browser struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Scanner
}

func (f *fixture) browse(feed *live.Feed, query func(context.Context) (live.Update, error)) browser {
	f.t.Helper()
	server := httptest.NewServer(stream(feed, query))
	f.t.Cleanup(server.Close)
	return get(f.t, server.URL)
}

// stream opens a stream for the key "a".
func stream(feed *live.Feed, query func(context.Context) (live.Update, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := feed.Serve(w, r, "a", query); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
		}
	})
}

func get(t *testing.T, url string) browser {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return browser{t, response, bufio.NewScanner(response.Body)}
}

// next returns the lines up to an empty one, and false at the end.
func (b browser) next() (event []string, more bool) {
	b.t.Helper()
	for b.lines.Scan() {
		if b.lines.Text() == "" {
			return event, true
		}
		event = append(event, b.lines.Text())
	}
	return event, false
}

// numbered returns a query whose results are 1, 2 and so on.
func numbered() func(context.Context) (live.Update, error) {
	var mu sync.Mutex
	n := 0
	return func(context.Context) (live.Update, error) {
		mu.Lock()
		defer mu.Unlock()
		n++
		return live.Update{Name: "number", Data: n}, nil
	}
}
