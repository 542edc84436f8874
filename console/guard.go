package console

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// guard refuses requests that the browser of a visitor sends on behalf of another site.
type guard struct {
	hosts []string
	seal  sealer
}

const (
	// policy allows only scripts, styles and requests of the console's own origin. It does not
	// allow inline scripts and styles, other hosts, and frames.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	visitorCookie = "millrace_console"
	formToken     = "token"
)

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// host refuses requests for a name that is not ours. A site can make its own name resolve to
// 127.0.0.1, and could then read all pages of a console that accepts any name.
func (g guard) host(r *http.Request) error {
	name := (&url.URL{Host: r.Host}).Hostname()
	if g.isOurs(r.Host) {
		return nil
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	switch loopback := ok && isLoopback(local.String()); {
	case loopback && (strings.EqualFold(name, "localhost") || net.ParseIP(name).IsLoopback()):
		return nil
	case loopback:
		return &refusedError{fmt.Sprintf("The console listens on the loopback interface and does not accept the name %q. "+
			"Open it as localhost, or list the name in Config.Hosts if a proxy is in front.", r.Host)}
	case len(g.hosts) > 0:
		return &refusedError{fmt.Sprintf("The console does not accept the name %q. Config.Hosts lists its names.", r.Host)}
	}
	return nil
}

// isOurs reports that a host is one of Config.Hosts, with or without its port.
func (g guard) isOurs(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	return slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, name) || strings.EqualFold(h, host) })
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && net.ParseIP(host).IsLoopback()
}

// visitor returns the token for the forms of a visitor. It sets the cookie to which the token
// belongs, if the visitor has none.
func (g guard) visitor(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(visitorCookie)
	if err != nil || len(cookie.Value) < leastSecret {
		id := make([]byte, leastSecret)
		_, _ = rand.Read(id) // never fails
		cookie = &http.Cookie{
			Name: visitorCookie, Value: base64.RawURLEncoding.EncodeToString(id), HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
		}
		http.SetCookie(w, cookie)
	}
	return g.seal.seal("form", cookie.Value)
}

// form refuses a form that is not from a page of this console for this visitor.
func (g guard) form(r *http.Request) error {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return &refusedError{"The action came from a page of another site."}
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) && !g.isOurs(u.Host) {
			return &refusedError{"The action came from a page of another site. If a proxy in front of the console does not pass on the Host header, list its name in Config.Hosts."}
		}
	}
	var visitor string
	cookie, err := r.Cookie(visitorCookie)
	if err != nil || g.seal.open("form", r.PostForm.Get(formToken), &visitor) != nil || visitor != cookie.Value {
		return &refusedError{"The form does not belong to this visit: cookies are off, or the console was restarted. Reload the page and try again."}
	}
	return nil
}
