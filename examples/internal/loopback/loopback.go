// Package loopback protects servers that only this machine can reach from web pages that the user
// visits. An attacker can change the address of a page's site to 127.0.0.1 while the page is open
// (DNS rebinding). For the browser the server then belongs to that site, and the page may read all
// of it. The Host header still contains the name of the site, and [Guard] refuses it.
package loopback

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Guard replies with status 421 unless Host is localhost, a loopback address, or one of names, such
// as the name of a proxy. It ignores ports. It does nothing if address is not a loopback address.
func Guard(address net.Addr, next http.Handler, names ...string) http.Handler {
	if tcp, ok := address.(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return next
	}
	names = append([]string{"localhost"}, names...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		if host != "" && (net.ParseIP(host).IsLoopback() || slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(host, name) })) {
			next.ServeHTTP(w, r)
			return
		}
		// Do not wait for a body, which may never arrive.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
		http.Error(w, fmt.Sprintf("This server is not %q: use http://%s.", host, address), http.StatusMisdirectedRequest)
	})
}

// hostOf returns the host without its port and brackets.
func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}
