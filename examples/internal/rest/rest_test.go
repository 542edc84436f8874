package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/rest"
	"github.com/millrace-dev/millrace/journal"
)

var errSoldOut = errors.New("sold out")

// ask sends a request to a mux with one route, which decodes the body.
func ask(t *testing.T, method, path, body string, fault error) (answer *httptest.ResponseRecorder, text, log string) {
	t.Helper()
	var lines bytes.Buffer
	mux := rest.New(rest.Config{
		Explain: func(err error) (int, string, bool) {
			return http.StatusConflict, "there are none left", errors.Is(err, errSoldOut)
		},
		Logger: slog.New(slog.NewTextHandler(&lines, nil)),
	})
	mux.Handle("POST /dishes", func(r *http.Request) (rest.Reply, error) {
		var dish struct{ Name string }
		if err := rest.Decode(r, &dish); err != nil && !errors.Is(err, io.EOF) {
			return rest.Reply{}, err
		}
		return rest.Reply{Status: http.StatusCreated, Location: "/dishes/1", Body: dish}, fault
	})
	mux.Handle("GET /dishes", func(*http.Request) (rest.Reply, error) { return rest.Reply{}, fault })
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w, w.Body.String(), lines.String()
}

func TestAReplyIsJSON(t *testing.T) {
	t.Parallel()
	answer, text, log := ask(t, "POST", "/dishes", `{"name": "Naan"}`, nil)
	assert.Equal(t, http.StatusCreated, answer.Code)
	assert.Equal(t, "/dishes/1", answer.Header().Get("Location"))
	assert.Equal(t, "application/json", answer.Header().Get("Content-Type"))
	assert.JSONEq(t, `{"Name": "Naan"}`, text)
	assert.Empty(t, log)

	answer, text, _ = ask(t, "GET", "/dishes", "", nil)
	assert.Equal(t, http.StatusOK, answer.Code)
	assert.Empty(t, text, "a reply may have no body")
	_, text, _ = ask(t, "POST", "/dishes", "", nil)
	assert.JSONEq(t, `{"Name": ""}`, text, "and so may a request, for those that take io.EOF")
}

func TestEveryErrorIsAProblemDocument(t *testing.T) {
	t.Parallel()
	const dishes = "/dishes"
	for name, c := range map[string]struct {
		method, path, body string
		fault              error
		status             int
		detail             string
		logged             bool
	}{
		"nothing there":      {"GET", "/drinks", "", nil, 404, "there is nothing at /drinks", false},
		"another method":     {"DELETE", dishes, "", nil, 405, "/dishes takes GET, HEAD, POST, not DELETE", false},
		"no JSON":            {"POST", dishes, "Naan", nil, 400, "invalid character", false},
		"an unknown field":   {"POST", dishes, `{"nam": 1}`, nil, 400, `unknown field "nam"`, false},
		"two documents":      {"POST", dishes, `{} {}`, nil, 400, "there is more data after the JSON document", false},
		"a large body":       {"POST", dishes, `{"name": "` + strings.Repeat("x", 300<<10) + `"}`, nil, 413, "too large", false},
		"the application's":  {"GET", dishes, "", fmt.Errorf("order: %w", errSoldOut), 409, "there are none left", false},
		"a bad request":      {"GET", dishes, "", rest.BadRequest("no page %d", 7), 400, "no page 7", false},
		"a conflict":         {"GET", dishes, "", journal.ErrConflict, 409, "try again", false},
		"a throttled table":  {"GET", dishes, "", journal.ErrThrottled, 503, "try again", true},
		"an unknown outcome": {"GET", dishes, "", journal.ErrOutcomeUnknown, 504, "may or may not", true},
		"a deadline":         {"GET", dishes, "", context.DeadlineExceeded, 504, "did not answer in time", true},
		"anything else":      {"GET", dishes, "", errors.New("secret"), 500, "its log says why", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, text, log := ask(t, c.method, c.path, c.body, c.fault)
			require.Equal(t, c.status, answer.Code)
			assert.Equal(t, "application/problem+json", answer.Header().Get("Content-Type"))
			var problem struct {
				Title, Detail string
				Status        int
			}
			require.NoError(t, json.Unmarshal([]byte(text), &problem))
			assert.Equal(t, c.status, problem.Status)
			assert.Equal(t, http.StatusText(c.status), problem.Title)
			assert.Contains(t, problem.Detail, c.detail)
			assert.NotContains(t, text, "secret")
			assert.Equal(t, c.logged, log != "", log)
			assert.Equal(t, c.status == http.StatusServiceUnavailable, answer.Header().Get("Retry-After") != "")
			assert.Equal(t, c.status == http.StatusMethodNotAllowed, answer.Header().Get("Allow") != "")
		})
	}
}

func TestAPathThatIsNotCleanIsLedToTheOneThatIs(t *testing.T) {
	t.Parallel()
	answer, _, _ := ask(t, "GET", "//dishes", "", nil)
	assert.Equal(t, "/dishes", answer.Header().Get("Location"))
	assert.Less(t, answer.Code, 400)
}
