package console_test

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// auditLog stores the log lines of actions.
type auditLog struct {
	watermill.NopLogger
	mu    sync.Mutex
	lines []watermill.LogFields
}

func (l *auditLog) Info(message string, fields watermill.LogFields) {
	if message == "Console action" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, fields)
	}
}

// taken returns the lines since the last call.
func (l *auditLog) taken() (lines []watermill.LogFields) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, l.lines = l.lines, nil
	return lines
}

// site is a served console, with a group "mails" on the topic "cart".
type site struct {
	*journal.Journal
	url   string
	audit *auditLog
}

func newSite(t *testing.T, change func(*console.Config), mount func(http.Handler) http.Handler) *site {
	t.Helper()
	s := &site{Journal: newJournal(t, journal.Config{}), audit: &auditLog{}}
	_, err := checkpoint.New(s.Journal).ChangeMembership(t.Context(), checkpoint.Key{Group: "mails", Topic: "cart"}, checkpoint.Membership{}, checkpoint.NewMembership(s.Shards(), time.Time{}))
	require.NoError(t, err)
	config := console.Config{
		Journal: s.Journal, AllowActions: true, Logger: s.audit, Refresh: -1,
		Authorize: func(*http.Request, console.Action) (string, error) { return "ada", nil },
	}
	if change != nil {
		change(&config)
	}
	var handler http.Handler = newConsole(t, config)
	if mount != nil {
		handler = mount(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s.url = server.URL + "/"
	return s
}

func (s *site) paused(t *testing.T) bool {
	t.Helper()
	g, err := groups.Of(s.Journal, "mails", "cart").Status(t.Context())
	require.NoError(t, err)
	return g.Paused
}

// visitor is a browser with cookies that follows no redirects.
type visitor struct{ client *http.Client }

func newVisitor(t *testing.T) visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return visitor{&http.Client{Jar: jar, Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// answer is the reply to a request.
type answer struct {
	status int
	header http.Header
	url    *url.URL // after redirects
	body   string
}

func (v visitor) do(t *testing.T, r *http.Request) answer {
	t.Helper()
	reply, err := v.client.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(reply.Body)
	require.NoError(t, errors.Join(err, reply.Body.Close()))
	return answer{reply.StatusCode, reply.Header, reply.Request.URL, string(body)}
}

func (v visitor) get(t *testing.T, url string) answer {
	t.Helper()
	return v.do(t, request(t, http.MethodGet, url, nil))
}

// token returns the token of the forms of a page.
func (v visitor) token(t *testing.T, page string) string {
	t.Helper()
	reply := v.get(t, page)
	found := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(reply.body)
	require.NotNil(t, found, reply.body)
	return found[1]
}

func request(t *testing.T, method, url string, form url.Values) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}

const groupPage = "group?name=mails&topic=cart"

// pause is the form that pauses the group.
func pause(token string) url.Values {
	return url.Values{"action": {"pause"}, "group": {"mails"}, "topic": {"cart"}, "back": {"./" + groupPage}, "token": {token}}
}

func TestActionsAreRefusedToOtherSitesAndVisitors(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, nil)
	other := newVisitor(t).token(t, s.url+groupPage)
	for name, test := range map[string]struct {
		change func(r *http.Request, form url.Values)
		says   string
	}{
		"without a token":       {func(_ *http.Request, form url.Values) { form.Del("token") }, "does not belong to this visit"},
		"with another's token":  {func(_ *http.Request, form url.Values) { form.Set("token", other) }, "does not belong to this visit"},
		"with an altered token": {func(_ *http.Request, form url.Values) { form.Set("token", "x"+form.Get("token")) }, "does not belong to this visit"},
		"with an unsigned token": {func(_ *http.Request, form url.Values) {
			form.Set("token", strings.Split(form.Get("token"), ".")[0]+".")
		}, "does not belong to this visit"},
		"from another origin":     {func(r *http.Request, _ url.Values) { r.Header.Set("Origin", "https://evil.example") }, "a page of another site"},
		"from a page without one": {func(r *http.Request, _ url.Values) { r.Header.Set("Origin", "null") }, "a page of another site"},
		"from another port":       {func(r *http.Request, _ url.Values) { r.Header.Set("Origin", "http://127.0.0.1:1") }, "a page of another site"},
		"from a cross-site page":  {func(r *http.Request, _ url.Values) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, "a page of another site"},
		"from a subdomain":        {func(r *http.Request, _ url.Values) { r.Header.Set("Sec-Fetch-Site", "same-site") }, "a page of another site"},
		"with another's cookie": {func(r *http.Request, _ url.Values) {
			// Another cookie of the same name comes before the cookie of the visit.
			r.Header.Set("Cookie", "millrace_console="+strings.Repeat("x", 43))
		}, "does not belong to this visit"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVisitor(t)
			form := pause(v.token(t, s.url+groupPage))
			r := request(t, http.MethodPost, s.url+"action", nil)
			test.change(r, form)
			header := r.Header
			r = request(t, http.MethodPost, s.url+"action", form)
			maps.Copy(r.Header, header)
			reply := v.do(t, r)
			assert.Equal(t, http.StatusForbidden, reply.status)
			assert.Contains(t, reply.body, test.says)
			assert.False(t, s.paused(t))
			lines := s.audit.taken()
			require.Len(t, lines, 1)
			assert.Equal(t, "pause", lines[0]["action"])
			assert.Equal(t, "refused", lines[0]["outcome"])
			assert.Equal(t, "mails", lines[0]["group"])
			assert.Equal(t, "ada", lines[0]["actor"], "who sent it, perhaps without knowing")
			assert.Contains(t, lines[0], "error")
		})
	}
}

func TestAnActionIsDoneAndLogged(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, nil)
	v := newVisitor(t)
	r := request(t, http.MethodPost, s.url+"action", pause(v.token(t, s.url+groupPage)))
	r.Header.Set("Origin", strings.TrimSuffix(s.url, "/"))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	reply := v.do(t, r)
	assert.Equal(t, http.StatusSeeOther, reply.status)
	assert.True(t, s.paused(t))
	lines := s.audit.taken()
	require.Len(t, lines, 1)
	assert.Equal(t, "done", lines[0]["outcome"])
	assert.Equal(t, "ada", lines[0]["actor"])
	assert.NotEmpty(t, lines[0]["remote_addr"])

	page, err := reply.url.Parse(reply.header.Get("Location"))
	require.NoError(t, err)
	reply = v.get(t, page.String())
	assert.Contains(t, reply.body, "The group is paused.")
	query := page.Query()
	for _, forged := range []string{"VGhlIGdyb3VwIGlzIHBhdXNlZC4", query.Get("done") + "x", "x" + query.Get("done")} {
		query.Set("done", forged)
		page.RawQuery = query.Encode()
		reply = v.get(t, page.String())
		assert.Equal(t, http.StatusOK, reply.status)
		assert.NotContains(t, reply.body, "The group is paused.", forged)
	}

	failing := pause(v.token(t, s.url+groupPage))
	failing.Set("group", "nobody")
	reply = v.do(t, request(t, http.MethodPost, s.url+"action", failing))
	assert.Equal(t, http.StatusNotFound, reply.status)
	lines = s.audit.taken()
	require.Len(t, lines, 1)
	assert.Equal(t, "failed", lines[0]["outcome"])
}

func TestActionsAreRefusedThatNobodyAllows(t *testing.T) {
	t.Parallel()
	readOnly := newSite(t, func(c *console.Config) { c.AllowActions, c.Authorize = false, nil }, nil)
	v := newVisitor(t)
	reply := v.get(t, readOnly.url+groupPage)
	assert.NotContains(t, reply.body, "<form method=\"post\"")
	reply = v.do(t, request(t, http.MethodPost, readOnly.url+"action", pause("")))
	assert.Equal(t, http.StatusForbidden, reply.status)
	assert.Contains(t, reply.body, "This console only reads")
	assert.False(t, readOnly.paused(t))
	require.Len(t, readOnly.audit.taken(), 1)

	var asked console.Action
	strict := newSite(t, func(c *console.Config) {
		c.Authorize = func(_ *http.Request, a console.Action) (string, error) {
			asked = a
			return "ben", errors.New("ben is a trainee")
		}
	}, nil)
	form := pause(v.token(t, strict.url+groupPage))
	reply = v.do(t, request(t, http.MethodPost, strict.url+"action", form))
	assert.Equal(t, http.StatusForbidden, reply.status)
	assert.Contains(t, reply.body, "You may not do that: ben is a trainee")
	assert.False(t, strict.paused(t))
	assert.Equal(t, console.Action{Name: "pause", Group: "mails", Topic: "cart"}, asked)
	lines := strict.audit.taken()
	require.Len(t, lines, 1)
	assert.Equal(t, "ben", lines[0]["actor"])
	assert.Equal(t, "refused", lines[0]["outcome"])
}

func TestAHostThatIsNotOursIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, nil)
	v := newVisitor(t)
	form := pause(v.token(t, s.url+groupPage))
	for _, path := range []string{"", "groups", "api/groups", "stream?topic=cart", "static/app.js"} {
		r := request(t, http.MethodGet, s.url+path, nil)
		r.Host = "evil.example"
		reply := v.do(t, r)
		assert.Equal(t, http.StatusForbidden, reply.status, path)
		assert.Contains(t, reply.body, "evil.example", path)
	}
	r := request(t, http.MethodPost, s.url+"action", form)
	r.Host = "evil.example"
	reply := v.do(t, r)
	assert.Equal(t, http.StatusForbidden, reply.status)
	assert.False(t, s.paused(t))
	for _, host := range []string{"localhost", "LOCALHOST:80", "127.0.0.1", "[::1]:8080"} {
		r := request(t, http.MethodGet, s.url+"groups", nil)
		r.Host = host
		reply := v.do(t, r)
		assert.Equal(t, http.StatusOK, reply.status, host)
	}

	named := newSite(t, func(c *console.Config) { c.Hosts = []string{"ops.example.com"} }, nil)
	for host, status := range map[string]int{"ops.example.com": http.StatusOK, "OPS.example.com:443": http.StatusOK, "ops.example.com.evil.example": http.StatusForbidden} {
		r := request(t, http.MethodGet, named.url+"groups", nil)
		r.Host = host
		reply := v.do(t, r)
		assert.Equal(t, status, reply.status, host)
	}
}

func TestActionsThatMakeNoSenseAreExplained(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, nil)
	v := newVisitor(t)
	token := v.token(t, s.url+groupPage)
	for says, change := range map[string]url.Values{
		`There is no action &#34;burn&#34;.`:            {"action": {"burn"}},
		`There is no action &#34;&#34;.`:                {"action": nil},
		`The number is &#34;three&#34;: enter a number`: {"action": {"skip"}, "type": {"cart"}, "id": {"1"}, "number": {"three"}},
		`The number is &#34;-1&#34;`:                    {"action": {"skip"}, "type": {"cart"}, "id": {"1"}, "number": {"-1"}},
		`type &#34;mails&#34; to confirm`:               {"action": {"reset"}, "to": {"now"}, "confirm": {"Mails"}},
		`Choose where the group begins`:                 {"action": {"reset"}, "to": {"someday"}, "confirm": {"mails"}},
		`does not say which page it is from`:            {"back": {"https://evil.example/"}},
		`say which page it is from.`:                    {"back": {"//evil.example/groups"}},
		`The form cannot be read`:                       {"reason": {strings.Repeat("x", 100_000)}},
	} {
		form := pause(token)
		maps.Copy(form, change)
		reply := v.do(t, request(t, http.MethodPost, s.url+"action", form))
		assert.Equal(t, http.StatusBadRequest, reply.status, says)
		assert.Contains(t, reply.body, says)
		assert.False(t, s.paused(t), says)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		reply := v.do(t, request(t, method, s.url+"action?"+pause(token).Encode(), nil))
		assert.Equal(t, http.StatusMethodNotAllowed, reply.status, method)
		assert.Equal(t, http.MethodPost, reply.header.Get("Allow"))
		assert.False(t, s.paused(t))
	}
	reply := v.do(t, request(t, http.MethodPost, s.url+"action?"+pause(token).Encode(), url.Values{}))
	assert.Equal(t, http.StatusBadRequest, reply.status, "parameters of the link do not count")
	reply = v.do(t, request(t, http.MethodPost, s.url+"groups", url.Values{}))
	assert.Equal(t, http.StatusMethodNotAllowed, reply.status)
}

func TestTokensOfPagesAreForOnePage(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, nil)
	r := repositoryOf(t, s.Journal, repository.Config{})
	for i := range 51 {
		save(t.Context(), t, r, strings.Repeat("x", i+1), opened{"ada"})
	}
	v := newVisitor(t)
	reply := v.get(t, s.url+"aggregates?type=cart")
	next := regexp.MustCompile(`rel="next" href="\./aggregates\?after=([^&]+)&amp;type=cart"`).FindStringSubmatch(reply.body)
	require.NotNil(t, next, reply.body)
	reply = v.get(t, s.url+"aggregates?type=cart&after="+next[1])
	assert.Equal(t, http.StatusOK, reply.status)
	for _, page := range []string{
		"aggregates?type=order&after=" + next[1], "behind?name=mails&topic=cart&after=" + next[1], "skipped?name=mails&topic=cart&after=" + next[1],
		"aggregates?type=cart&after=x" + next[1], "aggregates?type=cart&after=" + strings.Split(next[1], ".")[0], "aggregates?type=cart&after=.", "behind?name=mails&topic=cart&after=x.y",
		"aggregates?type=cart&after=" + v.token(t, s.url+groupPage),
	} {
		reply := v.get(t, s.url+page)
		assert.Equal(t, http.StatusBadRequest, reply.status, page)
		assert.Contains(t, reply.body, "The link does not belong to this console", page)
	}
}

func TestUnknownPagesAreNotFound(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(c *console.Config) { c.Refresh = time.Hour }, nil)
	v := newVisitor(t)
	for _, page := range []string{"nothing", "groups/nothing", "api/nothing", "api/action", "static/nothing", "static/..%2fhtml.go", "index.html"} {
		reply := v.get(t, s.url+page)
		assert.Equal(t, http.StatusNotFound, reply.status, page)
	}
	reply := v.get(t, s.url+"group?name=nobody&topic=cart")
	assert.Equal(t, http.StatusNotFound, reply.status)
	assert.NotContains(t, reply.body, "data-refresh", "there is nothing to refresh")
	reply = v.get(t, s.url+"model?name=%3Cscript%3E")
	assert.Equal(t, http.StatusBadRequest, reply.status)
	assert.NotContains(t, reply.body, "<script>")
}

func TestTheConsoleWorksUnderAnyPath(t *testing.T) {
	t.Parallel()
	for name, mount := range map[string]func(http.Handler) http.Handler{
		"in a mux": func(h http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/ops/console/", h)
			return mux
		},
		"with a prefix stripped": func(h http.Handler) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/ops/console/", http.StripPrefix("/ops/console", h))
			return mux
		},
		"without a mux":             func(h http.Handler) http.Handler { return http.StripPrefix("/ops/console", h) },
		"with all of it stripped":   func(h http.Handler) http.Handler { return http.StripPrefix("/ops/console/", h) },
		"behind a proxy's own path": func(h http.Handler) http.Handler { return http.StripPrefix("/ops", h) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil, mount)
			v := newVisitor(t)
			v.client.CheckRedirect = nil
			base := s.url + "ops/console/"
			for _, page := range []string{"", "groups", groupPage} {
				reply := v.get(t, base+page)
				require.Equal(t, http.StatusOK, reply.status, page)
				assert.Equal(t, base+page, reply.url.String(), "it is not led elsewhere")
				for _, asset := range regexp.MustCompile(`(?:href|src)="\./(static/[^"]+)"`).FindAllStringSubmatch(reply.body, -1) {
					reply := v.get(t, base+asset[1])
					assert.Equal(t, http.StatusOK, reply.status, asset[1])
				}
			}
			reply := v.get(t, base+"api/groups")
			assert.Equal(t, "application/json; charset=utf-8", reply.header.Get("Content-Type"))
			if !strings.HasPrefix(name, "with all of it") && !strings.HasPrefix(name, "behind") {
				reply = v.get(t, strings.TrimSuffix(base, "/"))
				assert.Equal(t, base, reply.url.String())
				assert.Equal(t, http.StatusOK, reply.status)
			}

			reply = v.do(t, request(t, http.MethodPost, base+"action", pause(v.token(t, base+groupPage))))
			assert.Equal(t, http.StatusOK, reply.status)
			assert.Equal(t, "/ops/console/group", reply.url.Path)
			assert.Contains(t, reply.body, "The group is paused.")
			assert.True(t, s.paused(t))
		})
	}
}
