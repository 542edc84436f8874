package web

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"

	"github.com/millrace-dev/millrace/examples/internal/rest"
)

//go:embed static
var static embed.FS

// page serves index.html, with and without a room, and its files.
func page(mux *rest.Mux) {
	index := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFileFS(w, r, static, "static/index.html")
	})
	mux.Raw("GET /{$}", index)
	mux.Raw("GET /r/{id}", index)
	files := http.FileServerFS(static)
	mux.Raw("GET /static/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, err := fs.Stat(static, strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil || file.IsDir() {
			rest.WriteProblem(w, http.StatusNotFound, "there is nothing at "+r.URL.Path)
			return
		}
		files.ServeHTTP(w, r)
	}))
}

// secure restricts pages to content of this server, and forbids other sites to frame them.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		// Anyone with the address of a room can join it.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache") // a new version of the program has a new page
		next.ServeHTTP(w, r)
	})
}
