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

type reply struct {
	status int
	header http.Header
	body   *bufio.Reader
}

func post(t *testing.T, url, gate string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("body"))
	require.NoError(t, err)
	request.Header = http.Header{"Mark": {"mark"}, "Gate": {gate}}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	return reply{response.StatusCode, response.Header, bufio.NewReader(response.Body)}
}

func TestAResponseIsStreamed(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	r := post(t, serve(t, function(t, machine.Config{Name: "stream"}))+"/a/b?c=d&e=f", g.url)
	assert.Equal(t, http.StatusTeapot, r.status)
	assert.Equal(t, "text/plain", r.header.Get("Content-Type"))
	assert.Equal(t, []string{"one=1", "two=2"}, r.header.Values("Set-Cookie"))
	line, err := r.body.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "POST /a/b?c=d&e=f mark body\n", line, "it must arrive before the end of the response")
	close(g.opened)
	rest, err := io.ReadAll(r.body)
	require.NoError(t, err)
	assert.Equal(t, "last\n", string(rest))
}

func TestAStreamEndsWithTheProcess(t *testing.T) {
	t.Parallel()
	g, f := newGate(t), function(t, machine.Config{Name: "stream"})
	r := post(t, serve(t, f), g.url)
	assert.Equal(t, http.StatusTeapot, r.status)
	f.Kill(func(int) int { return 0 })
	_, err := io.ReadAll(r.body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestAFailureIsABadGateway(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fail", "crash", "pid"} { // "pid" does not reply with a stream
		url := serve(t, function(t, machine.Config{Name: name}))
		assert.Equal(t, http.StatusBadGateway, post(t, url, "").status, name)
	}
}

func TestAThrottledRequestIsRefused(t *testing.T) {
	t.Parallel()
	url, g := serve(t, function(t, machine.Config{Name: "stream"})), newGate(t)
	assert.Equal(t, http.StatusTeapot, post(t, url, g.url).status)
	assert.Equal(t, http.StatusTooManyRequests, post(t, url, g.url).status)
	close(g.opened)
}
