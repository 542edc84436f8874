package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/examples/planningpoker/web"
)

func TestAPageOfAnotherSiteCannotPlay(t *testing.T) {
	t.Parallel()
	handler := web.New(web.Config{Metrics: http.NotFoundHandler()}) // a refusal needs no other part
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/rooms", strings.NewReader("{}"))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	reply := httptest.NewRecorder()
	handler.ServeHTTP(reply, request)
	assert.Equal(t, http.StatusForbidden, reply.Code)
	assert.Contains(t, reply.Body.String(), "another site")
}
