package machine_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/lambda/machine"
)

func serve(t *testing.T, f *machine.Function) string {
	t.Helper()
	server := httptest.NewServer(machine.URL{Function: f})
	t.Cleanup(server.Close)
	return server.URL
}

func post(t *testing.T, url, gate string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("body"))
	require.NoError(t, err)
	request.Header = http.Header{"Mark": {"mark"}, "Gate": {gate}}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

func TestAResponseIsStreamed(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	response := post(t, serve(t, function(t, machine.Config{Name: "stream"}))+"/a/b?c=d&e=f", g.url)

	assert.Equal(t, http.StatusTeapot, response.StatusCode)
	assert.Equal(t, "text/plain", response.Header.Get("Content-Type"))
	assert.Equal(t, []string{"one=1", "two=2"}, response.Header.Values("Set-Cookie"))
	body := bufio.NewReader(response.Body)
	line, err := body.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "POST /a/b?c=d&e=f mark body\n", line, "it must arrive before the end of the response")
	close(g.opened)
	rest, err := io.ReadAll(body)
	require.NoError(t, err)
	assert.Equal(t, "last\n", string(rest))
}

func TestAStreamEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	g, f := newGate(t), function(t, machine.Config{Name: "stream"})
	response := post(t, serve(t, f), g.url)
	assert.Equal(t, http.StatusTeapot, response.StatusCode)
	f.Kill(func(int) int { return 0 })
	_, err := io.ReadAll(response.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestAFailureIsABadGateway(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fail", "crash", "pid"} { // the last one does not reply with a stream
		response := post(t, serve(t, function(t, machine.Config{Name: name})), "")
		assert.Equal(t, http.StatusBadGateway, response.StatusCode, name)
	}
}

func TestAThrottledRequestIsRefused(t *testing.T) {
	t.Parallel()
	url, g := serve(t, function(t, machine.Config{Name: "stream"})), newGate(t)
	first := post(t, url, g.url)
	assert.Equal(t, http.StatusTeapot, first.StatusCode)
	assert.Equal(t, http.StatusTooManyRequests, post(t, url, g.url).StatusCode)
	close(g.opened)
}
