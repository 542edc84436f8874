package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
)

// Reply is the reply to a request that succeeded.
type Reply struct {
	Status int             // default: 200
	Token  aggregate.Token // what the request has written, if anything
	Body   any             // encoded as JSON; default: no body
}

// Write replies with an error if err is not nil, see [Status], and with the reply otherwise. The
// text of an error with a status below 500 is for the client: of a refused command, it is the text
// of the decision's error. The text of another error is not. It is logged with slog.Default, except
// when the client has gone. A reply 503 has Retry-After: 1.
func Write(w http.ResponseWriter, r *http.Request, err error, reply Reply) {
	if err != nil {
		writeError(w, r, err)
		return
	}
	status := reply.Status
	if status == 0 {
		status = http.StatusOK
	}
	consistency.Set(w, reply.Token)
	if reply.Body == nil {
		w.WriteHeader(status)
		return
	}
	text, err := json.Marshal(reply.Body)
	if err != nil {
		writeError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // an error means that the client has gone
}

func writeError(w http.ResponseWriter, r *http.Request, err error) {
	status := Status(err)
	switch {
	case is[*repository.CommandMismatchError](err):
		http.Error(w, "the "+IdempotencyKey+" was used for another request: send a new one", status)
		return
	case errors.Is(err, projection.ErrPageToken): // which may wrap an error of the database
		http.Error(w, projection.ErrPageToken.Error(), status)
		return
	case status == http.StatusGone: // the error tells how the data was stored
		http.Error(w, "it was deleted for good", status)
		return
	case status < http.StatusInternalServerError:
		http.Error(w, err.Error(), status)
		return
	}
	if r.Context().Err() == nil {
		slog.ErrorContext(r.Context(), "The request has failed", "method", r.Method, "path", r.URL.Path, "status", status, "err", err)
	}
	text := "the service has failed"
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
		text = "try again"
	}
	http.Error(w, text, status)
}

// Status returns the status of a reply for an error of a command or a query:
//
//	200  nil
//	400  *aggregate.InvalidIDError, *aggregate.InvalidTokenError, projection.ErrPageToken,
//	     *projection.QueryError about Limit or Partition, *repository.SameParticipantError
//	404  journal.ErrNotFound, also as the error of a decision
//	409  *repository.RefusedError, *journal.WriteRefusedError, and journal.ErrConflict, which
//	     Execute returns for a version that is not the expected one
//	410  *journal.DeletedError, journal.ErrKeyDestroyed
//	413  *journal.TooLargeError
//	422  *repository.CommandMismatchError
//	503  the database or another service is not available, is busy, or did not reply in time; or
//	     the context has ended
//	500  anything else
//
// After 503 the client may repeat the request, with the same [IdempotencyKey], since a command may
// have been executed.
func Status(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case is[*repository.RefusedError](err):
		// Nothing else that the decision's error wraps counts.
		if errors.Is(err, journal.ErrNotFound) {
			return http.StatusNotFound
		}
		return http.StatusConflict
	case isUnavailable(err):
		return http.StatusServiceUnavailable
	case is[*aggregate.InvalidIDError](err), is[*aggregate.InvalidTokenError](err), errors.Is(err, projection.ErrPageToken),
		is[*repository.SameParticipantError](err), isOfClient(err):
		return http.StatusBadRequest
	case is[*journal.WriteRefusedError](err), errors.Is(err, journal.ErrConflict):
		return http.StatusConflict
	case is[*repository.CommandMismatchError](err):
		return http.StatusUnprocessableEntity
	case errors.Is(err, journal.ErrNotFound):
		return http.StatusNotFound
	case is[*journal.DeletedError](err), errors.Is(err, journal.ErrKeyDestroyed):
		return http.StatusGone
	case is[*journal.TooLargeError](err):
		return http.StatusRequestEntityTooLarge
	default:
		return http.StatusInternalServerError
	}
}

// isOfClient reports whether a client has chosen what is wrong in a query.
func isOfClient(err error) bool {
	var query *projection.QueryError
	return errors.As(err, &query) && (query.Field == "Limit" || query.Field == "Partition")
}

// isUnavailable reports whether the same request may succeed later.
func isUnavailable(err error) bool {
	for _, passing := range []error{
		journal.ErrThrottled, journal.ErrContended, journal.ErrUnavailable, journal.ErrOutcomeUnknown, context.DeadlineExceeded, context.Canceled,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return is[*repository.AttemptsError](err) || dynamo.IsTransient(err)
}

func is[E error](err error) bool {
	var as E
	return errors.As(err, &as)
}
