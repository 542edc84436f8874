package rest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/rest"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

// connect connects to a server that reads bodies, with a time limit for requests.
func connect(t *testing.T, timeout time.Duration) (net.Conn, *bufio.Reader) {
	t.Helper()
	mux := rest.New(rest.Config{Logger: slog.New(slog.DiscardHandler)})
	mux.Timeout(timeout)
	mux.Handle("POST /dishes", func(r *http.Request) (rest.Reply, error) {
		var dish struct{ Name string }
		if err := rest.Decode(r, &dish); err != nil {
			return rest.Reply{}, err
		}
		return cook(r.Context())
	})
	mux.Raw("GET /menu", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		left, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.Empty(t, left)
		_, _ = io.WriteString(w, "Naan")
	}))
	mux.Handle("GET /dishes", func(r *http.Request) (rest.Reply, error) { return cook(r.Context()) })
	server := httptest.NewServer(rest.SameOrigin(mux))
	t.Cleanup(server.Close)
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	require.NoError(t, connection.SetDeadline(time.Now().Add(patience)))
	return connection, bufio.NewReader(connection)
}

// cook takes the whole time limit of a request. It fails if the client seems to be gone.
func cook(ctx context.Context) (rest.Reply, error) {
	<-ctx.Done()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return rest.Reply{}, nil
	}
	return rest.Reply{}, ctx.Err()
}

func send(t *testing.T, to io.Writer, replies *bufio.Reader, request string) (status int) {
	t.Helper()
	_, err := io.WriteString(to, request)
	require.NoError(t, err)
	response, err := http.ReadResponse(replies, nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

func post(body string, length int) string { return request("POST /dishes", "", body, length) }

// request returns a request whose header announces a body of the given length. The body itself may
// be shorter.
func request(line, header, body string, length int) string {
	return fmt.Sprintf("%s HTTP/1.1\r\nHost: kitchen\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", line, header, length, body)
}

func TestABodyThatDoesNotComeIsNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	connection, replies := connect(t, 50*time.Millisecond)
	assert.Equal(t, http.StatusRequestTimeout, send(t, connection, replies, post(`{"name": `, 100)))
	_, err := replies.ReadByte()
	assert.ErrorIs(t, err, io.EOF, "the rest of the body could come at any time, so the connection must be closed")
}

func TestNoRequestWaitsForItsBodyWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"of a raw route":    {request("GET /menu", "", "{", 100), http.StatusRequestTimeout},
		"of no route":       {request("POST /nothing", "", "{", 100), http.StatusNotFound},
		"of another method": {request("POST /menu", "", "{", 100), http.StatusMethodNotAllowed},
		"of another site":   {request("POST /dishes", "Sec-Fetch-Site: cross-site\r\n", "{", 100), http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection, replies := connect(t, 50*time.Millisecond)
			assert.Equal(t, c.status, send(t, connection, replies, c.request))
			_, err := replies.ReadByte()
			assert.ErrorIs(t, err, io.EOF, "the connection must be closed")
		})
	}
}

func TestABodyThatARawRouteDoesNotNeedIsPassedOver(t *testing.T) {
	t.Parallel()
	connection, replies := connect(t, patience)
	for range 2 {
		assert.Equal(t, http.StatusOK, send(t, connection, replies, request("GET /menu", "", "{}", 2)))
	}
	assert.Equal(t, http.StatusRequestEntityTooLarge, send(t, connection, replies, request("GET /menu", "", strings.Repeat("x", 300<<10), 300<<10)))
}

func TestAConnectionIsGoodForManyRequestsHoweverLongItLasts(t *testing.T) {
	t.Parallel()
	connection, replies := connect(t, 100*time.Millisecond)
	// Each request takes the whole time. The limit for the body of one must not affect the next.
	for range 3 {
		assert.Equal(t, http.StatusOK, send(t, connection, replies, "GET /dishes HTTP/1.1\r\nHost: kitchen\r\n\r\n"))
		assert.Equal(t, http.StatusOK, send(t, connection, replies, post(`{"name": "Naan"}`, 16)))
	}
}
