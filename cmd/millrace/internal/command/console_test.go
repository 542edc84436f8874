package command_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// served is a running console with a browser.
type served struct {
	t        *testing.T
	url      string // includes the key
	base     string
	out, err *screen
	browser  *http.Client
	stop     context.CancelFunc
	ended    chan int
}

// console runs millrace console until the test ends, and waits for its address.
func (s *shell) console(t *testing.T, args ...string) *served {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	c := &served{t: t, out: &screen{}, err: &screen{}, browser: &http.Client{Jar: jar, Timeout: patience}, stop: stop, ended: make(chan int, 1)}
	env := s.env
	env.Out, env.Err = c.out, c.err
	go func() {
		defer close(c.ended)
		c.ended <- command.Run(ctx, append([]string{"console"}, args...), env)
	}()
	t.Cleanup(func() {
		stop()
		<-c.ended
	})
	printed := regexp.MustCompile(`http://[^\s"]+/\?key=\w+`)
	require.Eventually(t, func() bool { return printed.MatchString(c.out.String()) || len(c.ended) > 0 }, patience, 5*time.Millisecond)
	c.url = printed.FindString(c.out.String())
	require.NotEmpty(t, c.url, "the console must print its address: %s", c.err)
	c.base, _, _ = strings.Cut(c.url, "?")
	return c
}

// open sends a request, and returns the status and the body of the reply.
func (c *served) open(request *http.Request) (status int, body string) {
	c.t.Helper()
	response, err := c.browser.Do(request)
	require.NoError(c.t, err)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	require.NoError(c.t, err)
	return response.StatusCode, string(data)
}

func (c *served) get(path string) (status int, body string) {
	c.t.Helper()
	return c.open(c.request(http.MethodGet, path, nil))
}

// page opens a page that must exist.
func (c *served) page(path string) string {
	c.t.Helper()
	status, body := c.get(path)
	require.Equal(c.t, http.StatusOK, status, "%s: %s", path, body)
	return body
}

func (c *served) request(method, path string, body io.Reader) *http.Request {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, body)
	require.NoError(c.t, err)
	return request
}

// enter opens the printed address.
func (c *served) enter() string {
	c.t.Helper()
	_, key, _ := strings.Cut(c.url, "?")
	return c.page("?" + key)
}

// act sends a form of a page with the token of the page.
func (c *served) act(page string, form url.Values) (status int, body string) {
	c.t.Helper()
	if token := regexp.MustCompile(`name="token" value="([^"]*)"`).FindStringSubmatch(c.page(page)); token != nil {
		form.Set("token", token[1])
	}
	form.Set("back", "./"+page)
	request := c.request(http.MethodPost, "action", strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return c.open(request)
}

// interrupted interrupts the console, and returns its exit code.
func (c *served) interrupted() int {
	c.t.Helper()
	c.stop()
	select {
	case code := <-c.ended:
		return code
	case <-time.After(patience):
		require.FailNow(c.t, "the console must end with the interrupt")
		return 0
	}
}

const pausePage = "group?name=audit&topic=account"

func pauseForm() url.Values {
	return url.Values{"action": {"pause"}, "group": {"audit"}, "topic": {"account"}}
}

func TestConsolePrintsAnAddressThatShowsThePage(t *testing.T) {
	t.Parallel()
	s, _ := setupGroup(t)
	c := s.console(t)
	assert.Regexp(t, `^console\s+http://127\.0\.0\.1:\d+/\?key=\w{20,}\n$`, c.out.String())

	assert.Contains(t, c.enter(), "<h1>Overview</h1>")
	assert.Contains(t, c.page(pausePage), "audit", "the key is in a cookie now")
	assert.Contains(t, c.page("aggregate?type=account&id=1"), "account.deposited.v1")
	cookies := c.browser.Jar.Cookies(c.request(http.MethodGet, "", nil).URL)
	require.Len(t, cookies, 1)
	assert.Regexp(t, `^millrace_key_\d+$`, cookies[0].Name, "another console on another port has another cookie")
	assert.NotContains(t, c.page(""), cookies[0].Value, "no page has the key")
}

func TestConsolePrintsAnObject(t *testing.T) {
	t.Parallel()
	c := setupTables(t).console(t, "--json")
	printed := lines(t, c.out.String())
	require.Len(t, printed, 1)
	assert.Equal(t, map[string]any{"kind": "console", "url": c.url}, printed[0])
}

func TestConsoleRefusesThoseWithoutTheKey(t *testing.T) {
	t.Parallel()
	c := setupTables(t).console(t, "--allow-actions")
	for _, path := range []string{"", "?key=wrong", "groups", "groups?key=" + c.url[strings.Index(c.url, "key=")+4:], "api/", "api/groups", "stream?topic=account", "static/app.css"} {
		status, body := c.get(path)
		assert.Equal(t, http.StatusUnauthorized, status, path)
		assert.Contains(t, body, "It contains the key", path)
	}
	status, _ := c.open(c.request(http.MethodPost, "action", strings.NewReader(pauseForm().Encode())))
	assert.Equal(t, http.StatusUnauthorized, status)
	wrong := c.request(http.MethodGet, "", nil)
	wrong.AddCookie(&http.Cookie{Name: "millrace_key_" + wrong.URL.Port(), Value: "wrong"})
	status, _ = c.open(wrong)
	assert.Equal(t, http.StatusUnauthorized, status)
}

func TestConsoleRefusesNamesOfOthers(t *testing.T) {
	t.Parallel()
	c := setupTables(t).console(t)
	c.enter()
	for host, want := range map[string]int{
		"rebound.example.com": http.StatusForbidden, "192.0.2.1": http.StatusForbidden, "localhost": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]": http.StatusOK,
	} {
		request := c.request(http.MethodGet, "api/groups", nil)
		for _, cookie := range c.browser.Jar.Cookies(request.URL) {
			request.AddCookie(cookie) // a browser at another name would not send it
		}
		request.Host = host + ":" + request.URL.Port()
		status, body := c.open(request)
		assert.Equal(t, want, status, "%s: %s", host, body)
	}
}

func TestConsoleListensOnThisMachineAlone(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt() // a console that listens ends at once
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:80", "example.com:80", "localhost:0", "127.0.0.1", ""} {
		o := s.runWith(ctx, "console", "--listen", address)
		assert.Equal(t, command.ExitUsage, o.code, "%q: %s", address, o.err)
		assert.Contains(t, o.err, "want a loopback address with a port", address)
		assert.Empty(t, o.out, address)
	}
	o := s.runWith(ctx, "console", "--page-units", "0")
	assert.Equal(t, command.ExitUsage, o.code)
	assert.Contains(t, o.err, "--page-units is 0")
}

func TestConsoleSaysThatAnAddressIsTaken(t *testing.T) {
	t.Parallel()
	s := setupTables(t)
	c := s.console(t)
	o := s.run(t, "console", "--listen", c.request(http.MethodGet, "", nil).URL.Host)
	assert.Equal(t, command.ExitFailure, o.code)
	assert.Contains(t, o.err, "choose another address with --listen")
}

func TestConsoleEndsWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	c := setupTables(t).console(t)
	assert.Equal(t, command.ExitOK, c.interrupted(), "an interrupt is how one ends it")
	assert.Empty(t, c.err.String())
}

func TestConsoleEndsItsTailsWhenItIsInterrupted(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	c := s.console(t)
	c.enter()
	response, err := c.browser.Do(c.request(http.MethodGet, "stream?topic=account&format=json", nil))
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	stream := bufio.NewReader(response.Body)
	shown := func(prefix, text string) {
		t.Helper()
		for {
			line, err := stream.ReadString('\n')
			require.NoError(t, err, "the tail must show %s", text)
			if strings.HasPrefix(line, prefix) && strings.Contains(line, text) {
				return
			}
		}
	}
	shown("data: ", `"id":"1"`)
	deposits(t, j, account("new"), 1, 1)
	shown("data: ", `"id":"new"`)

	assert.Equal(t, command.ExitOK, c.interrupted())
	shown("event: ", "failed")
	shown("data: ", "shutting down")
	rest, err := io.ReadAll(stream)
	require.NoError(t, err, "the tail must end, and not break off")
	assert.Empty(t, strings.TrimSpace(string(rest)))
}

func TestConsoleActsIfItIsAllowedTo(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	c := s.console(t, "--allow-actions")
	c.enter()

	status, body := c.act(pausePage, pauseForm())
	require.Equal(t, http.StatusOK, status, body)
	assert.Contains(t, body, "The group is paused.")
	g, err := groups.Of(j, "audit", "account").Status(t.Context())
	require.NoError(t, err)
	assert.True(t, g.Paused)
	assert.Regexp(t, `(?m)^Console action .*action=pause .*group=audit .*outcome=done .*topic=account`, c.err.String())

	forged := c.request(http.MethodPost, "action", strings.NewReader(url.Values{
		"action": {"resume"}, "group": {"audit"}, "topic": {"account"}, "back": {"./"}, "token": {"e30.e30"},
	}.Encode()))
	forged.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, _ = c.open(forged)
	assert.Equal(t, http.StatusForbidden, status, "a form without the token of a page")
	assert.Regexp(t, `(?m)^Console action .*action=resume .*outcome=refused`, c.err.String())
	g, err = groups.Of(j, "audit", "account").Status(t.Context())
	require.NoError(t, err)
	assert.True(t, g.Paused)
}

func TestConsoleOnlyReadsByDefault(t *testing.T) {
	t.Parallel()
	s, j := setupGroup(t)
	c := s.console(t)
	assert.NotContains(t, c.enter(), "<form method=\"post\"")
	assert.NotContains(t, c.page(pausePage), "<form method=\"post\"")

	status, body := c.act(pausePage, pauseForm())
	assert.Equal(t, http.StatusForbidden, status)
	assert.Contains(t, body, "only reads")
	g, err := groups.Of(j, "audit", "account").Status(t.Context())
	require.NoError(t, err)
	assert.False(t, g.Paused)
}

func TestConsoleHidesPayloads(t *testing.T) {
	t.Parallel()
	s, _ := setupGroup(t)
	for _, show := range []bool{true, false} {
		args := []string{"--payload=false"}
		if show {
			args = nil
		}
		c := s.console(t, args...)
		c.enter()
		for _, path := range []string{"aggregate?type=account&id=1", "api/aggregate?type=account&id=1", "topic?name=account", "api/topic?name=account"} {
			body := c.page(path)
			assert.Equal(t, show, strings.Contains(body, "Amount"), "payload in %s", path)
			assert.Equal(t, show, strings.Contains(body, "request-1"), "metadata in %s", path)
		}
	}
}

func TestConsoleFindsTablesByTheirPrefix(t *testing.T) {
	t.Parallel()
	s := setupApp(t)
	tables := journal.Tables{Journal: "shop-journal", Snapshot: "shop-snapshot", Checkpoint: "shop-checkpoint"}
	deposits(t, s.open(t, journal.Config{Tables: tables}), account("of-the-shop"), 1, 1)

	c := s.console(t, "--prefix", "shop-", "--topic", "account")
	c.enter()
	var overview struct {
		Data struct {
			Topics []struct {
				Topic string
				Last  struct{ ID string }
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(c.page("api/")), &overview))
	require.Len(t, overview.Data.Topics, 1)
	assert.Equal(t, "of-the-shop", overview.Data.Topics[0].Last.ID)
	assert.Contains(t, c.page("api/models"), `"table": "shop-readmodel"`)
	for _, page := range []string{"api/models", "api/processes?show=open"} {
		assert.Contains(t, c.page(page), `"no_table": false`)
	}

	o := s.run(t, "console")
	assert.Equal(t, command.ExitFailure, o.code, "there are no tables without the prefix")
	assert.Contains(t, o.err, "--prefix")
}
