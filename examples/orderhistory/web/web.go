// Package web has the page with a consumer's orders: plain HTML, CSS and JavaScript, without a
// build step, which use the REST API.
package web

import (
	"embed"
	"net/http"
)

//go:embed static
var embedded embed.FS

// Page serves the page at any path.
func Page() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, embedded, "static/index.html")
	})
}

// Files serves the files of the page at /static/.
func Files() http.Handler {
	files := http.FileServerFS(embedded)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
}
