package loopback_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/loopback"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

// status returns the status of a request to a server at an address, with a Host header.
func status(t *testing.T, address, host string, names ...string) int {
	t.Helper()
	handler := loopback.Guard(&net.TCPAddr{IP: net.ParseIP(address), Port: 8080},
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), names...)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	request.Host = host
	reply := httptest.NewRecorder()
	handler.ServeHTTP(reply, request)
	if reply.Code != http.StatusNoContent {
		assert.Contains(t, reply.Body.String(), "8080", "it must say where the server is")
	}
	return reply.Code
}

func TestAServerOnLoopbackAnswersOnlyToItsMachine(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]int{
		"localhost": 204, "localhost:8080": 204, "LocalHost:1": 204, "127.0.0.1": 204, "127.0.0.1:8080": 204, "127.0.0.2:8080": 204,
		"[::1]": 204, "[::1]:8080": 204, "orders.example": 204, "Orders.example:443": 204,
		"evil.example": 421, "evil.example:8080": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example:8080": 421, "10.0.0.1": 421,
		"": 421, ":8080": 421,
	} {
		assert.Equal(t, want, status(t, "127.0.0.1", host, "orders.example", ""), "%q", host)
		assert.Equal(t, want, status(t, "::1", host, "orders.example"), "%q", host)
	}
}

func TestAServerThatOthersReachAnswersToAnyHost(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0", "::", "192.168.0.7"} {
		assert.Equal(t, 204, status(t, address, "orders.example:8080"), address)
	}
}

func TestARefusalDoesNotWaitForABody(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = loopback.Guard(server.Listener.Addr(), http.NotFoundHandler())
	server.Start()
	t.Cleanup(server.Close)
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	require.NoError(t, connection.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(connection, "POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	reply, err := io.ReadAll(connection) // until the connection is closed
	require.NoError(t, err)
	assert.Contains(t, string(reply), "421 Misdirected Request")
}
