package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// patience limits the time that a test waits before it fails. It says nothing about speed.
const patience = 2 * time.Minute

// message is a server-sent event.
type message struct{ event, data string }

// follow opens a live tail, and returns its messages until the test ends. The channel is closed
// when the server ends the stream.
func follow(t *testing.T, url string) (messages <-chan message, leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // the goroutine below closes it
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	received := make(chan message, 1000)
	go func() {
		defer close(received)
		defer response.Body.Close()
		lines := bufio.NewReader(response.Body)
		var m message
		for {
			text, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			switch name, value, _ := strings.Cut(strings.TrimSpace(text), ": "); name {
			case "event":
				m.event = value
			case "data":
				m.data = value
			case "":
				received <- m
			}
		}
	}()
	return received, cancel
}

// numbers waits for events, and returns their numbers.
func numbers(t *testing.T, messages <-chan message, n int) []uint64 {
	t.Helper()
	var seen []uint64
	for len(seen) < n {
		m := next(t, messages)
		if m.event != "event" {
			continue
		}
		var e struct{ Number uint64 }
		require.NoError(t, json.Unmarshal([]byte(m.data), &e))
		seen = append(seen, e.Number)
	}
	return seen
}

func next(t *testing.T, messages <-chan message) message {
	t.Helper()
	return await.Receive(t, messages, "a message")
}

func TestALiveTailBeginsWithTheNewestAndGoesOnWithWhatIsWritten(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		r := repositoryOf(t, j, repository.Config{})
		save(t.Context(), t, r, "1", opened{"ada"}, added{line{"tea", 1}})
		server := httptest.NewServer(newConsole(t, console.Config{Journal: j}))
		t.Cleanup(server.Close)
		messages, leave := follow(t, server.URL+"/stream?topic=cart&format=json&id=1&event_type=cart.")
		defer leave()
		assert.Equal(t, []uint64{1, 2}, numbers(t, messages, 2))
		save(t.Context(), t, r, "2", opened{"ben"}) // the filter leaves it out
		save(t.Context(), t, r, "1", added{line{"milk", 1}})

		seen := map[uint64]bool{}
		for !seen[3] { // events from just before the tail began may come again
			seen[numbers(t, messages, 1)[0]] = true
		}
	})
}

func TestViewersOfATopicShareOneReadThatEndsWithTheLast(t *testing.T) {
	t.Parallel()
	c := newConsole(t, console.Config{Journal: newJournal(t, journal.Config{})})
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	first, leaveFirst := follow(t, server.URL+"/stream?topic=cart")
	assert.Equal(t, 1, viewers(t, first))
	second, leaveSecond := follow(t, server.URL+"/stream?topic=cart")
	assert.Equal(t, 2, viewers(t, second))
	assert.Equal(t, 1, c.Tails())
	leaveFirst()
	for n := 2; n != 1; { // the server notices it soon
		n = viewers(t, second)
	}
	assert.Equal(t, 1, c.Tails())
	leaveSecond()
	require.Eventually(t, func() bool { return c.Tails() == 0 }, patience, time.Millisecond)
}

// viewers waits for a status.
func viewers(t *testing.T, messages <-chan message) int {
	t.Helper()
	m := next(t, messages)
	for m.event != "status" {
		m = next(t, messages)
	}
	var status struct{ Viewers int }
	require.NoError(t, json.Unmarshal([]byte(m.data), &status))
	return status.Viewers
}

func TestClosingTheConsoleEndsLiveTails(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	c := newConsole(t, console.Config{Journal: j})
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	messages, _ := follow(t, server.URL+"/stream?topic=cart")
	next(t, messages)
	c.Close()
	for open := true; open; {
		_, open = <-messages
	}
	response, err := http.Get(server.URL + "/stream?topic=cart") //nolint:noctx // a test of a local server
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode)
	response, err = http.Get(server.URL + "/groups") //nolint:noctx // a test of a local server
	require.NoError(t, err)
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	assert.Equal(t, http.StatusOK, response.StatusCode, "other pages still work")
}
