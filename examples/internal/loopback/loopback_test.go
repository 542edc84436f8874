package loopback_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/examples/internal/loopback"
)

// status is that of a request for a host to a server at an address.
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
