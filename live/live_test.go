package live_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// patience bounds a failing test and is no claim about speed.
const patience = 2 * time.Minute

type counter struct{ N int }

type added struct{}

func (added) EventType() string { return "counter.added.v1" }
func (added) Apply(c *counter)  { c.N++ }

var counters = aggregate.Define[counter]("counter", added{})

func add(counter) (aggregate.Events[counter], error) {
	return aggregate.Events[counter]{added{}}, nil
}

// fixture is a journal with a read model, which is the position of its group.
type fixture struct {
	t       *testing.T
	client  *dynamodb.Client
	journal *journal.Journal
	repo    *repository.Repository[counter]
	hint    func(*journal.Record) string
	mu      sync.Mutex
	asked   map[string]int // by aggregate, how often its key was asked for
}

func setup(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, client: testdb.Client(t), asked: map[string]int{}}
	require.NoError(t, journal.Create(t.Context(), f.client, journal.Config{Shards: 2}))
	f.journal = f.open()
	var err error
	f.repo, err = repository.New(f.journal, counters, repository.Config{})
	require.NoError(t, err)
	return f
}

// open is another process.
func (f *fixture) open() *journal.Journal {
	f.t.Helper()
	j, err := journal.Open(f.t.Context(), f.client, journal.Config{})
	require.NoError(f.t, err)
	return j
}

func (f *fixture) add(id string) {
	f.t.Helper()
	_, err := f.repo.Execute(f.t.Context(), id, add)
	require.NoError(f.t, err)
}

// model acks events as they are let through.
func (f *fixture) model() (letThrough chan<- struct{}) {
	f.t.Helper()
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: f.journal, ConsumerGroup: "model", CommitInterval: 10 * time.Millisecond,
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

func (f *fixture) feed(j *journal.Journal) *live.Feed {
	f.t.Helper()
	feed, err := live.New(live.Config{
		Journal: j, Group: "model", Topics: []string{"counter"},
		Key: func(_ context.Context, r *journal.Record) (string, error) {
			f.mu.Lock()
			f.asked[r.Aggregate.Value]++
			f.mu.Unlock()
			if r.Aggregate.Value == "broken" {
				return "", errors.New("the read model cannot be read")
			}
			return r.Aggregate.Value, nil
		},
		Hint: f.hint,
	})
	require.NoError(f.t, err)
	ended := make(chan error, 1)
	go func() { ended <- feed.Run(context.WithoutCancel(f.t.Context())) }()
	f.t.Cleanup(func() {
		assert.NoError(f.t, feed.Close())
		assert.NoError(f.t, <-ended)
	})
	<-feed.Running()
	return feed
}

func await(t *testing.T, changed <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, open := <-changed:
		require.True(t, open, "the feed must not be closed")
	case <-time.After(patience):
		require.Fail(t, "there must be a signal: "+what)
	}
}

func TestWhoWatchesIsToldOnceTheReadModelHasTheEvent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	apply := f.model()
	feed := f.feed(f.journal)
	changed, stop := feed.Watch("a")
	defer stop()
	others, stopOthers := feed.Watch("b")
	defer stopOthers()

	f.add("a")
	require.Never(t, func() bool { return len(changed) > 0 }, 100*time.Millisecond, 5*time.Millisecond, "the read model does not have it yet")
	apply <- struct{}{}

	await(t, changed, "the read model has the event")
	applied, err := groups.New(f.journal).Applied(t.Context(), "model", aggregate.ID{Type: "counter", Value: "a"})
	require.NoError(t, err)
	assert.EqualValues(t, 1, applied)
	assert.Empty(t, others, "nothing has happened to b")
}

func TestEveryProcessIsTold(t *testing.T) {
	t.Parallel()
	f := setup(t)
	apply := f.model()
	here, stop := f.feed(f.journal).Watch("a")
	defer stop()
	there, stopThere := f.feed(f.open()).Watch("a")
	defer stopThere()

	f.add("a")
	apply <- struct{}{}

	await(t, here, "in the process that wrote the event")
	await(t, there, "in the other process")
}

func TestAnEventThatConcernsNobodyHoldsNothingUp(t *testing.T) {
	t.Parallel()
	f := setup(t)
	apply := f.model()
	changed, stop := f.feed(f.journal).Watch("a")
	defer stop()
	for range 3 {
		apply <- struct{}{}
	}
	f.add("broken")
	f.add("unwatched")
	f.add("a")
	await(t, changed, "after events that could not be told")
}

func TestCloseEndsTheWatchingAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed := f.feed(f.journal)
	changed, stop := feed.Watch("a")

	require.NoError(t, feed.Close())

	_, open := <-changed
	assert.False(t, open)
	stop()
	late, _ := feed.Watch("a")
	_, open = <-late
	assert.False(t, open)
	all, err := groups.New(f.journal).List(t.Context())
	require.NoError(t, err)
	assert.Empty(t, all)
	require.NoError(t, feed.Close(), "again")
}

func TestAFeedThatIsClosedBeforeItRunsDoesNotRun(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed, err := live.New(live.Config{
		Journal: f.journal, Group: "model", Topics: []string{"counter"},
		Key: func(context.Context, *journal.Record) (string, error) { return "", nil },
	})
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, feed.Close())
	require.NoError(t, feed.Run(t.Context()))
	assert.Less(t, time.Since(began), 4*time.Second, "there is nothing to wait for")
}

// browser reads a stream of a feed.
type browser struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Scanner
}

func (f *fixture) browse(feed *live.Feed, show func(context.Context) (live.Event, error)) browser {
	f.t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := feed.Serve(w, r, "a", show); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
		}
	}))
	f.t.Cleanup(server.Close)
	response, err := http.Get(server.URL)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { _ = response.Body.Close() })
	return browser{f.t, response, bufio.NewScanner(response.Body)}
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

func TestAStreamShowsWhatIsSoAndThenEachChangeUpToTheLast(t *testing.T) {
	t.Parallel()
	f := setup(t)
	apply := f.model()
	feed := f.feed(f.journal)
	b := f.browse(feed, func(ctx context.Context) (live.Event, error) {
		c, err := f.repo.Load(ctx, "a")
		if errors.Is(err, journal.ErrNotFound) {
			err = nil
		}
		return live.Event{Name: "count", ID: strings.Repeat("x", c.State.N), Data: c.State, Last: c.State.N == 2}, err
	})
	require.Equal(t, "text/event-stream", b.response.Header.Get("Content-Type"))

	retry, _ := b.next()
	assert.Equal(t, []string{"retry: 1000"}, retry)
	first, _ := b.next()
	assert.Equal(t, []string{"event: count", `data: {"N":0}`}, first)
	f.add("a")
	apply <- struct{}{}
	second, _ := b.next()
	assert.Equal(t, []string{"event: count", "id: x", `data: {"N":1}`}, second)
	f.add("a")
	apply <- struct{}{}
	third, _ := b.next()
	assert.Equal(t, []string{"event: count", "id: xx", `data: {"N":2}`}, third)
	_, more := b.next()
	assert.False(t, more, "that was the last")
}

func TestAStreamDoesNotShowTheSameTwice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	apply := f.model()
	shown := "1"
	b := f.browse(f.feed(f.journal), func(context.Context) (live.Event, error) {
		defer func() { shown = "2" }()
		return live.Event{Name: "state", ID: shown}, nil
	})
	b.next() // retry
	first, _ := b.next()
	assert.Contains(t, first, "id: 1")
	f.add("a")
	apply <- struct{}{}
	second, _ := b.next()
	assert.Contains(t, second, "id: 2")
	f.add("a")
	apply <- struct{}{}
	third, _ := b.next()
	assert.Equal(t, []string{": still there"}, third)
}

func TestAStreamLooksAgainAfterAWhileInAnyCase(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed := f.feed(f.journal)
	feed.LookAgainEvery(time.Millisecond)
	news := f.browse(feed, func(context.Context) (live.Event, error) { return live.Event{Name: "news"}, nil })
	state := f.browse(feed, func(context.Context) (live.Event, error) { return live.Event{Name: "state", ID: "1"}, nil })
	news.next() // retry
	state.next()
	for range 3 {
		event, _ := news.next()
		assert.Equal(t, []string{"event: news", "data: null"}, event, "there may be some, nobody knows")
	}
	event, _ := state.next()
	assert.Contains(t, event, "id: 1")
	for range 3 {
		event, _ = state.next()
		assert.Equal(t, []string{": still there"}, event, "it is the same")
	}
}

func TestNothingIsReadForAnEventThatNobodyWatches(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.hint = func(r *journal.Record) string { return r.Aggregate.Value }
	changed, stop := f.feed(f.journal).Watch("a")
	defer stop()
	f.add("b") // for which the read model, which is not there, would be waited for
	apply := f.model()
	for range 2 {
		apply <- struct{}{}
	}
	f.add("a")
	await(t, changed, "of a")
	assert.Zero(t, f.asked["b"])
	assert.Equal(t, 1, f.asked["a"])
}

func TestAReadModelThatCannotBeReadForAMomentIsAskedAgain(t *testing.T) {
	t.Parallel()
	f := setup(t)
	apply := f.model()
	faulty := dynamotest.NewProxy(t, f.client)
	j, err := journal.Open(t.Context(), faulty.Client(testdb.Once), journal.Config{})
	require.NoError(t, err)
	changed, stop := f.feed(j).Watch("a")
	defer stop()
	refused := faulty.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem"), dynamotest.Times(2))
	f.add("a")
	apply <- struct{}{}
	await(t, changed, "all the same")
	applied, err := groups.New(f.journal).Applied(t.Context(), "model", aggregate.ID{Type: "counter", Value: "a"})
	require.NoError(t, err)
	assert.EqualValues(t, 1, applied)
	assert.Equal(t, 2, refused.Fired())
}

func TestAStreamThatCannotBeginIsTheCallersProblem(t *testing.T) {
	t.Parallel()
	f := setup(t)
	b := f.browse(f.feed(f.journal), func(context.Context) (live.Event, error) {
		return live.Event{}, errors.New("there is no such thing")
	})
	assert.Equal(t, http.StatusNotFound, b.response.StatusCode)
}

func TestAStreamEndsWithTheFeedAndWithAnError(t *testing.T) {
	t.Parallel()
	f := setup(t)
	apply := f.model()
	feed := f.feed(f.journal)
	looks := 0
	failing := f.browse(feed, func(context.Context) (live.Event, error) {
		if looks++; looks > 1 {
			return live.Event{}, errors.New("the database is away")
		}
		return live.Event{Name: "look"}, nil
	})
	ending := f.browse(feed, func(context.Context) (live.Event, error) { return live.Event{Name: "look"}, nil })
	for _, b := range []browser{failing, ending} {
		b.next()
		b.next()
	}

	f.add("a")
	apply <- struct{}{}
	_, more := failing.next()
	assert.False(t, more)
	_, more = ending.next()
	assert.True(t, more)
	require.NoError(t, feed.Close())
	_, more = ending.next()
	assert.False(t, more)
}
