// Package rest has the common code of the examples' REST APIs: JSON in and out, and a problem
// document (RFC 9457) for each error.
//
//	mux := rest.New(rest.Config{Explain: explain})
//	mux.Handle("POST /orders", func(r *http.Request) (rest.Reply, error) { ... })
package rest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// Config configures a [Mux].
type Config struct {
	// Explain returns the status for an error of the application, and the detail for the client.
	// Errors of the journal, of reading requests and of deadlines need no explanation.
	Explain func(error) (status int, detail string, ok bool)
	// Logger logs errors that a client cannot fix. Default: slog.Default().
	Logger *slog.Logger
}

// Reply is a successful reply.
type Reply struct {
	Status   int // default: 200
	Location string
	Body     any // encoded as JSON; nil for none
}

// Mux serves the replies of functions, or problem documents for their errors.
type Mux struct {
	config  Config
	mux     *http.ServeMux
	timeout time.Duration // for a request
}

// New returns a Mux without routes.
func New(config Config) *Mux {
	if config.Explain == nil {
		config.Explain = func(error) (int, string, bool) { return 0, "", false }
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Mux{config: config, mux: http.NewServeMux(), timeout: requestTimeout}
}

// requestTimeout limits the time of a request, and of its body. It is longer than the time for
// which the journal repeats throttled requests.
const requestTimeout = 30 * time.Second

// maxBody is the maximum size of a body in bytes.
const maxBody = 256 << 10

// Handle serves the replies of a function for the requests of a pattern.
func (m *Mux) Handle(pattern string, reply func(*http.Request) (Reply, error)) {
	m.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), m.timeout)
		defer cancel()
		answer, err := reply(r.WithContext(ctx))
		if err != nil {
			m.Problem(w, r, err)
			return
		}
		answer.write(w)
	})
}

// Raw serves requests whose reply is not one JSON document. There is no time limit, except for the
// body, which is read and discarded first.
func (m *Mux) Raw(pattern string, handler http.Handler) {
	m.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			m.Problem(w, r, err)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

func (a Reply) write(w http.ResponseWriter) {
	if a.Location != "" {
		w.Header().Set("Location", a.Location)
	}
	if a.Status == 0 {
		a.Status = http.StatusOK
	}
	if a.Body == nil {
		w.WriteHeader(a.Status)
		return
	}
	writeJSON(w, "application/json", a.Status, a.Body)
}

func writeJSON(w http.ResponseWriter, contentType string, status int, body any) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// An error means that the client is gone.
	_ = json.NewEncoder(w).Encode(body)
}

// ServeHTTP serves a request, with problem documents also for the refusals of the mux. The time and
// size of every body is limited, since the server reads the body even after a refusal.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(r.Context()) // a copy
	r.Body = http.MaxBytesReader(w, timed(w, r.Body, m.timeout), maxBody)
	handler, pattern := m.mux.Handler(r)
	if pattern != "" {
		m.mux.ServeHTTP(w, r) // it sets the path values
		return
	}
	refusal := &statusOnly{ResponseWriter: w}
	handler.ServeHTTP(refusal, r)
	if location := w.Header().Get("Location"); location != "" {
		w.WriteHeader(refusal.status) // the mux redirects to clean paths
		return
	}
	detail := "there is nothing at " + r.URL.Path
	if refusal.status == http.StatusMethodNotAllowed {
		detail = r.URL.Path + " takes " + w.Header().Get("Allow") + ", not " + r.Method
	}
	WriteProblem(w, refusal.status, detail)
}

// statusOnly passes headers on and discards the status.
type statusOnly struct {
	http.ResponseWriter
	status int
}

func (w *statusOnly) WriteHeader(status int)      { w.status = status }
func (w *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
