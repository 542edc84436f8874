package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// SameOrigin refuses requests from pages of other sites with status 403, since a browser allows any
// page to post a form anywhere. It accepts GET and HEAD, which change nothing. Requests of other
// programs have neither of the headers that it checks, so it accepts them. A proxy in front must
// not change the Host header.
func SameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && foreign(r) {
			// Do not wait for the rest of the body, which may never arrive.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
			WriteProblem(w, http.StatusForbidden, "the request is of a page of another site")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	// None means that the user, not a page, has sent the request.
	if !slices.Contains([]string{"", "same-origin", "none"}, site) {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	from, err := url.Parse(origin)
	// The host of "null" is empty.
	return err != nil || !strings.EqualFold(from.Host, r.Host)
}
