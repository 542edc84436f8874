// Package rest is what the REST APIs of the examples share: JSON in and out, and every error a
// problem document (RFC 9457).
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
	// Explain returns the status of an error of the application, and what to tell the client.
	// Errors of the journal, of reading requests and of deadlines need no explanation.
	Explain func(error) (status int, detail string, ok bool)
	Logger  *slog.Logger // of errors that a client can do nothing about; default: slog.Default()
}

// Reply is a successful answer.
type Reply struct {
	Status   int // default: 200
	Location string
	Body     any // as JSON; nil for none
}

// Mux serves what functions reply, or the problems that they have.
type Mux struct {
	config  Config
	mux     *http.ServeMux
	timeout time.Duration // of a request
}

// New makes a Mux that serves nothing yet.
func New(config Config) *Mux {
	if config.Explain == nil {
		config.Explain = func(error) (int, string, bool) { return 0, "", false }
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	return &Mux{config: config, mux: http.NewServeMux(), timeout: requestTimeout}
}

// requestTimeout bounds what one request does, and how long its body takes. It is longer than the
// journal tries again when it is throttled.
const requestTimeout = 30 * time.Second

// maxBody is in bytes.
const maxBody = 256 << 10

// Handle serves what a function replies to the requests of a pattern.
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

// Raw serves requests whose answer is not one JSON document. Nothing bounds how long they take,
// except for the body, which is read and discarded first.
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
	_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
}

// ServeHTTP makes the mux's own refusals problems too. The body of every request is bounded in time
// and size, as the server reads it even after a refusal.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(r.Context()) // a copy
	r.Body = http.MaxBytesReader(w, timed(w, r.Body, m.timeout), maxBody)
	handler, pattern := m.mux.Handler(r)
	if pattern != "" {
		m.mux.ServeHTTP(w, r) // which fills in the path values
		return
	}
	refusal := &statusOnly{ResponseWriter: w}
	handler.ServeHTTP(refusal, r)
	if location := w.Header().Get("Location"); location != "" {
		w.WriteHeader(refusal.status) // the mux cleans paths
		return
	}
	detail := "there is nothing at " + r.URL.Path
	if refusal.status == http.StatusMethodNotAllowed {
		detail = r.URL.Path + " takes " + w.Header().Get("Allow") + ", not " + r.Method
	}
	WriteProblem(w, refusal.status, detail)
}

// statusOnly lets headers through and keeps the status from being written.
type statusOnly struct {
	http.ResponseWriter
	status int
}

func (w *statusOnly) WriteHeader(status int)      { w.status = status }
func (w *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
