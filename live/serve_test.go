package live_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
)

func TestAStreamSendsTheStateAndThenEachChangeUpToTheLast(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ack := f.model()
	b := f.browse(f.feed(f.config()), func(ctx context.Context) (live.Update, error) {
		c, err := f.repo.Load(ctx, "a")
		if errors.Is(err, journal.ErrNotFound) {
			err = nil
		}
		return live.Update{Name: "count", ID: strings.Repeat("x", c.State.N), Data: c.State, Last: c.State.N == 2}, err
	})
	require.Equal(t, "text/event-stream", b.response.Header.Get("Content-Type"))

	retry, _ := b.next()
	require.Len(t, retry, 1)
	assert.Regexp(t, `^retry: 1\d\d\d$`, retry[0], "between one second and two")
	first, _ := b.next()
	assert.Equal(t, []string{"event: count", `data: {"N":0}`}, first)
	f.add("a")
	ack <- struct{}{}
	second, _ := b.next()
	assert.Equal(t, []string{"event: count", "id: x", `data: {"N":1}`}, second)
	f.add("a")
	ack <- struct{}{}
	third, _ := b.next()
	assert.Equal(t, []string{"event: count", "id: xx", `data: {"N":2}`}, third)
	_, more := b.next()
	assert.False(t, more, "that was the last")
}

func TestAStreamDoesNotSendTheSameStateTwice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed := f.feed(f.config())
	var state atomic.Value
	state.Store(live.Update{Name: "state", ID: "1"})
	b := f.browse(feed, func(context.Context) (live.Update, error) { return state.Load().(live.Update), nil })
	b.next() // retry
	first, _ := b.next()
	assert.Equal(t, []string{"event: state", "id: 1", "data: null"}, first)

	feed.Notify("a")
	unchanged, _ := b.next()
	assert.Equal(t, []string{": unchanged"}, unchanged)
	state.Store(live.Update{Name: "state", ID: "1", Data: "other"})
	feed.Notify("a")
	changed, _ := b.next()
	assert.Equal(t, []string{"event: state", "id: 1", `data: "other"`}, changed)
	state.Store(live.Update{Name: "state", ID: "1", Data: "other", Last: true})
	feed.Notify("a")
	last, _ := b.next()
	assert.Equal(t, changed, last, "the last one is always sent")
}

func TestAStreamMissesNoChangeDuringItsQuery(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed := f.feed(f.config())
	query := numbered()
	b := f.browse(feed, func(ctx context.Context) (live.Update, error) {
		event, err := query(ctx)
		if event.Last = event.Data == 3; !event.Last {
			feed.Notify("a") // after the state has been read
		}
		return event, err
	})
	b.next() // retry
	for _, data := range []string{"data: 1", "data: 2", "data: 3"} {
		event, _ := b.next()
		assert.Contains(t, event, data)
	}
	_, more := b.next()
	assert.False(t, more)
}

func TestAStreamRefreshesWithoutANotification(t *testing.T) {
	t.Parallel()
	f := setup(t)
	config := f.config()
	config.RefreshInterval = time.Millisecond
	feed := f.feed(config)
	news := f.browse(feed, func(context.Context) (live.Update, error) { return live.Update{}, nil })
	state := f.browse(feed, func(context.Context) (live.Update, error) { return live.Update{Name: "state", ID: "1"}, nil })
	news.next() // retry
	state.next()
	for range 3 {
		event, _ := news.next()
		assert.Equal(t, []string{"data: null"}, event, "an event without an id is sent again")
	}
	event, _ := state.next()
	assert.Contains(t, event, "id: 1")
	for range 3 {
		event, _ = state.next()
		assert.Equal(t, []string{": unchanged"}, event)
	}
}

func TestAStreamThatCannotBeginIsAnError(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed := f.feed(f.config())
	for name, query := range map[string]func(context.Context) (live.Update, error){
		"not found":  func(context.Context) (live.Update, error) { return live.Update{}, errors.New("not found") },
		"no json":    func(context.Context) (live.Update, error) { return live.Update{Data: make(chan int)}, nil },
		"a bad id":   func(context.Context) (live.Update, error) { return live.Update{ID: "1\ndata: 2"}, nil },
		"a bad name": func(context.Context) (live.Update, error) { return live.Update{Name: "a\rb"}, nil },
	} {
		b := f.browse(feed, query)
		assert.Equal(t, http.StatusNotFound, b.response.StatusCode, name)
	}
}

// bare hides the Flush method of a writer, as some middlewares do.
type bare struct{ http.ResponseWriter }

type wrapped struct{ bare }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestAWriterThatCannotFlushIsRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed := f.feed(f.config())
	last := func(context.Context) (live.Update, error) { return live.Update{Data: 1, Last: true}, nil }
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	reply := httptest.NewRecorder()
	require.ErrorIs(t, feed.Serve(bare{reply}, request, "a", last), http.ErrNotSupported)
	assert.Empty(t, reply.Body.String())
	require.NoError(t, feed.Serve(wrapped{bare{reply}}, request, "a", last))
	assert.Contains(t, reply.Body.String(), "data: 1\n\n")
}

func TestAStreamEndsWhenALaterQueryFails(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed := f.feed(f.config())
	var queries atomic.Int32
	b := f.browse(feed, func(context.Context) (live.Update, error) {
		if queries.Add(1) > 1 {
			return live.Update{}, errors.New("the database is not available")
		}
		return live.Update{Name: "state"}, nil
	})
	b.next() // retry
	_, more := b.next()
	assert.True(t, more)
	feed.Notify("a")
	_, more = b.next()
	assert.False(t, more)
}

func TestAQueryThatHangsEndsWithTheFeed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed := f.feed(f.config())
	hangs := make(chan struct{})
	var queries atomic.Int32
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		assert.NoError(t, feed.Serve(w, r, "a", func(ctx context.Context) (live.Update, error) {
			if queries.Add(1) == 2 {
				close(hangs)
				<-ctx.Done()
			}
			return live.Update{Data: 1}, ctx.Err()
		}))
	}))
	defer server.Close()
	b := get(t, server.URL)
	b.next()
	feed.Notify("a")
	<-hangs
	require.NoError(t, feed.Close())
	await.End(t, ended, "the stream must end")
}

func TestAStreamEndsWhenItsClientDoesNotRead(t *testing.T) {
	t.Parallel()
	f := setup(t)
	config := f.config()
	config.WriteTimeout, config.RefreshInterval = 20*time.Millisecond, time.Millisecond
	feed := f.feed(config)
	ended := make(chan error, 1)
	large := strings.Repeat("x", 1<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ended <- feed.Serve(w, r, "a", func(context.Context) (live.Update, error) {
			return live.Update{Data: large}, nil
		})
	}))
	t.Cleanup(server.Close)
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer connection.Close()
	_, err = connection.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")) // it never reads
	require.NoError(t, err)
	require.NoError(t, await.Receive(t, ended, "the stream must end"))
}

func TestAStreamOutlivesTheWriteTimeoutOfTheServer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed := f.feed(f.config())
	server := httptest.NewUnstartedServer(stream(feed, numbered()))
	server.Config.WriteTimeout = time.Nanosecond // it has passed before the first write
	server.Start()
	t.Cleanup(server.Close)
	b := get(t, server.URL)
	b.next() // retry
	b.next()
	feed.Notify("a")
	event, more := b.next()
	assert.True(t, more)
	assert.Contains(t, event, "data: 2")
}

func TestAServerShutsDownWhileClientsStream(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed := f.feed(f.config())
	server := httptest.NewServer(stream(feed, numbered()))
	t.Cleanup(server.Close)
	server.Config.RegisterOnShutdown(func() { _ = feed.Close() })
	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer connection.Close()
	_, err = connection.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	require.NoError(t, err)
	defer response.Body.Close()
	b := browser{t, response, bufio.NewScanner(response.Body)}
	b.next() // retry
	b.next()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, server.Config.Shutdown(ctx))
	_, more := b.next()
	assert.False(t, more)
}
