package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/journal"
)

// problem is a document of RFC 9457. Its type is about:blank, so the title is that of the status.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func writeProblem(w http.ResponseWriter, status int, detail string) {
	writeJSON(w, "application/problem+json", status, problem{Title: http.StatusText(status), Status: status, Detail: detail})
}

// requestError is a request that cannot be read.
type requestError struct{ reason string }

func (e *requestError) Error() string { return e.reason }

func (s *server) problem(w http.ResponseWriter, r *http.Request, err error) {
	status, detail := http.StatusInternalServerError, "the server has failed, its log says how"
	var request *requestError
	var tooLarge *http.MaxBytesError
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	switch {
	case errors.As(err, &tooLarge):
		status, detail = http.StatusRequestEntityTooLarge, err.Error()
	case errors.As(err, &request),
		is(order.ErrInvalid, aggregate.ErrInvalidID, history.ErrInvalidFilter, history.ErrInvalidPageToken):
		status, detail = http.StatusBadRequest, err.Error()
	case is(order.ErrNotFound, history.ErrNotFound):
		status, detail = http.StatusNotFound, err.Error()
	case is(order.ErrExists, order.ErrNotAllowed):
		status, detail = http.StatusConflict, err.Error()
	case is(journal.ErrConflict):
		status, detail = http.StatusConflict, "others are changing the order all the time, try again"
	case is(journal.ErrThrottled):
		w.Header().Set("Retry-After", "1")
		status, detail = http.StatusServiceUnavailable, "the database is busy, try again"
	case is(journal.ErrOutcomeUnknown):
		// Commands may be sent again: one that was carried out changes nothing the second time.
		status, detail = http.StatusGatewayTimeout, "the command may or may not have been carried out, send it again"
	case is(context.DeadlineExceeded):
		status, detail = http.StatusGatewayTimeout, "the database did not answer in time, try again"
	}
	if status >= http.StatusInternalServerError && !errors.Is(r.Context().Err(), context.Canceled) { // the client is there
		s.Logger.Error("Request failed", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	}
	writeProblem(w, status, detail)
}
