package rest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/examples/internal/rest"
)

func TestOtherSitesCanChangeNothing(t *testing.T) {
	t.Parallel()
	const site, origin = "Sec-Fetch-Site", "Origin"
	for name, c := range map[string]struct {
		method string
		header map[string]string
		status int
	}{
		"a program":                     {http.MethodPost, nil, 200},
		"the page":                      {http.MethodPost, map[string]string{site: "same-origin", origin: "http://orders.example:8080"}, 200},
		"the page in an old browser":    {http.MethodPost, map[string]string{origin: "http://Orders.example:8080"}, 200},
		"the user":                      {http.MethodPost, map[string]string{site: "none"}, 200},
		"another site":                  {http.MethodPost, map[string]string{site: "cross-site", origin: "https://evil.example"}, 403},
		"another site without origin":   {http.MethodPost, map[string]string{site: "cross-site"}, 403},
		"a sister site":                 {http.MethodDelete, map[string]string{site: "same-site"}, 403},
		"another site in old browsers":  {http.MethodPost, map[string]string{origin: "https://evil.example"}, 403},
		"another port":                  {http.MethodPut, map[string]string{origin: "http://orders.example"}, 403},
		"a page without an origin":      {http.MethodPost, map[string]string{origin: "null"}, 403},
		"an origin that is none":        {http.MethodPost, map[string]string{origin: "http://%zz"}, 403},
		"a link of another site":        {http.MethodGet, map[string]string{site: "cross-site", origin: "https://evil.example"}, 200},
		"a look ahead of another site":  {http.MethodHead, map[string]string{site: "cross-site"}, 200},
		"a preflight from another site": {http.MethodOptions, map[string]string{origin: "https://evil.example"}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served := false
			handler := rest.SameOrigin(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true }))
			request := httptest.NewRequestWithContext(t.Context(), c.method, "http://orders.example:8080/orders/first/cancel", nil)
			for key, value := range c.header {
				request.Header.Set(key, value)
			}
			reply := httptest.NewRecorder()
			handler.ServeHTTP(reply, request)
			assert.Equal(t, c.status, reply.Code)
			assert.Equal(t, c.status == http.StatusOK, served)
			if !served {
				assert.Equal(t, "application/problem+json", reply.Header().Get("Content-Type"))
			}
		})
	}
}
