package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// SameOrigin refuses (403) requests from pages of other sites, except GET and HEAD, which change
// nothing: a browser lets any page post a form anywhere. Programs send neither of the headers that
// tell, and so pass. A proxy in front has to leave the Host header as it is.
func SameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && foreign(r) {
			// Do not wait for the rest of the body, which may never come.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			WriteProblem(w, http.StatusForbidden, "the request is of a page of another site")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	if !slices.Contains([]string{"", "same-origin", "none"}, site) { // none: no page sends it, but the user
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	from, err := url.Parse(origin)
	return err != nil || !strings.EqualFold(from.Host, r.Host) // that of "null" is empty
}
