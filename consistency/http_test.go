package consistency_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/consistency"
)

var order = aggregate.Token{{ID: aggregate.ID{Type: "order", Value: "42"}, Version: 7}}

func TestAQueryWaitsForWhatItsTokenNames(t *testing.T) {
	t.Parallel()
	late := aggregate.Token{{ID: aggregate.ID{Type: "order", Value: "late"}, Version: 1}}
	for name, test := range map[string]struct {
		token  string
		status int
		waited aggregate.Token
	}{
		"none":      {"", http.StatusOK, nil},
		"shown":     {order.String(), http.StatusOK, order},
		"late":      {late.String(), http.StatusServiceUnavailable, late},
		"no token":  {"x", http.StatusBadRequest, nil},
		"of others": {"account:1@1", http.StatusOK, nil},
	} {
		var waited aggregate.Token
		failed := 0
		wait := func(ctx context.Context, token aggregate.Token) error {
			if waited = token; token[0].ID.Value == "late" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		h := consistency.Middleware(wait, consistency.Config{
			Timeout: time.Millisecond, Topics: []string{"order"}, OnError: func(_ *http.Request, err error) {
				failed++
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			},
		})(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(consistency.Header, test.token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Equal(t, test.status, w.Code, name)
		assert.Equal(t, test.waited, waited, name)
		assert.Equal(t, test.status == http.StatusServiceUnavailable, failed == 1, name)
		assert.Equal(t, test.status == http.StatusServiceUnavailable, w.Header().Get("Retry-After") == "1", name)
	}
}

func TestTheReplyToACommandHasItsToken(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	consistency.Set(w, nil)
	assert.Empty(t, w.Header())
	consistency.Set(w, order)
	assert.Equal(t, "order:42@7", w.Header().Get(consistency.Header))
}

func TestAQueryWaitsForALimitedNumberOfAggregates(t *testing.T) {
	t.Parallel()
	named := func(kind string, n int) (token aggregate.Token) {
		for i := range n {
			token = append(token, aggregate.VersionedID{ID: aggregate.ID{Type: kind, Value: strconv.Itoa(i)}, Version: 1})
		}
		return token
	}
	for name, test := range map[string]struct {
		max    int
		token  aggregate.Token
		status int
	}{
		"as many as by default": {0, named("order", 20), http.StatusOK},
		"more than by default":  {0, named("order", 21), http.StatusBadRequest},
		"more, but of others":   {0, named("order", 20).And(named("account", 20)), http.StatusOK},
		"as many as configured": {100, named("order", 100), http.StatusOK},
		"more than configured":  {1, named("order", 2), http.StatusBadRequest},
		"more than a token has": {200, named("order", 101), http.StatusBadRequest},
	} {
		var failed error
		h := consistency.Middleware(func(context.Context, aggregate.Token) error { return nil }, consistency.Config{
			Topics: []string{"order"}, MaxAggregates: test.max, OnError: func(_ *http.Request, err error) { failed = err },
		})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set(consistency.Header, test.token.String())
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		assert.Equal(t, test.status, w.Code, name)
		if test.status != http.StatusOK && len(test.token) <= 100 {
			var tooMany *consistency.TooManyAggregatesError
			require.ErrorAs(t, failed, &tooMany, name)
			assert.Equal(t, len(test.token), tooMany.Aggregates, name)
			assert.Contains(t, w.Body.String(), tooMany.Error(), name)
		}
	}
}
