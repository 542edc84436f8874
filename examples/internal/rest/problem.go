package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// problem is a problem document of RFC 9457. Its type is about:blank, so its title is the text of
// the status.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// WriteProblem replies with a problem.
func WriteProblem(w http.ResponseWriter, status int, detail string) {
	writeJSON(w, "application/problem+json", status, problem{Title: http.StatusText(status), Status: status, Detail: detail})
}

// BadRequest returns an error for a request that cannot be read.
func BadRequest(format string, args ...any) error { return &badRequest{fmt.Errorf(format, args...)} }

type badRequest struct{ error }

func (e *badRequest) Unwrap() error { return errors.Unwrap(e.error) }

// Problem replies with the problem document for an error.
func (m *Mux) Problem(w http.ResponseWriter, r *http.Request, err error) {
	status, detail, explained := m.config.Explain(err)
	if !explained {
		status, detail = explain(err)
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	// the client is still connected
	if status >= http.StatusInternalServerError && !errors.Is(r.Context().Err(), context.Canceled) {
		m.config.Logger.Error("Request failed", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	}
	WriteProblem(w, status, detail)
}

func explain(err error) (status int, detail string) {
	var request *badRequest
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge, err.Error()
	case errors.Is(err, ErrSlowBody):
		return http.StatusRequestTimeout, ErrSlowBody.Error() + ", send it again"
	case errors.As(err, &request), errors.As(err, new(*aggregate.InvalidIDError)):
		return http.StatusBadRequest, err.Error()
	case errors.Is(err, journal.ErrConflict):
		return http.StatusConflict, "others are changing the same data all the time, try again"
	case errors.Is(err, journal.ErrThrottled), errors.Is(err, journal.ErrContended):
		return http.StatusServiceUnavailable, "the database is busy, try again"
	case errors.Is(err, journal.ErrUnavailable):
		return http.StatusServiceUnavailable, "the database cannot be reached, try again"
	case errors.Is(err, journal.ErrOutcomeUnknown):
		return http.StatusGatewayTimeout, "the command may or may not have been executed, check before you send it again"
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "the database did not answer in time, try again"
	default:
		return http.StatusInternalServerError, "the server has failed, its log says why"
	}
}

// Decode reads the JSON document in the body of a request, and refuses unknown fields. Errors:
// io.EOF for no body, and errors about the request.
func Decode(r *http.Request, body any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(body)
	if err == nil && decoder.More() {
		err = errors.New("there is more data after the JSON document")
	}
	var tooLarge *http.MaxBytesError
	if err == nil || errors.As(err, &tooLarge) {
		return err
	}
	return BadRequest("the body is not what this request takes: %w", err)
}
