package console

import (
	"context"
	"errors"
	"net/http"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Errors of requests. requestError reports invalid parameters. refusedError reports a request that
// is not allowed. missingError reports something that does not exist. unavailableError reports
// something that is not possible now.
type (
	requestError     struct{ reason string }
	refusedError     struct{ reason string }
	missingError     struct{ reason string }
	unavailableError struct{ reason string }
)

func (e *requestError) Error() string     { return e.reason }
func (e *refusedError) Error() string     { return e.reason }
func (e *missingError) Error() string     { return e.reason }
func (e *unavailableError) Error() string { return e.reason }

// statusOf returns the HTTP status of an error.
func statusOf(err error) int {
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	switch {
	case errors.As(err, new(*requestError)), errors.As(err, new(*aggregate.InvalidIDError)), errors.As(err, new(*readmodel.ConfigError)):
		return http.StatusBadRequest
	case errors.As(err, new(*refusedError)):
		return http.StatusForbidden
	case errors.As(err, new(*missingError)), is(journal.ErrNotFound, groups.ErrNoGroup, groups.ErrNoSuchEvent, readmodel.ErrNoModel,
		readmodel.ErrNoGeneration, journal.ErrTableMissing):
		return http.StatusNotFound
	case errors.As(err, new(*journal.DeletedError)), errors.As(err, new(*journal.TruncatedError)):
		return http.StatusGone
	case is(groups.ErrNotParked, groups.ErrNotSkipped, groups.ErrExternalPositions, groups.ErrRowAhead, process.ErrNotPending, readmodel.ErrServing, readmodel.ErrNoPrevious,
		readmodel.ErrChanged, journal.ErrConflict), errors.As(err, new(*groups.NotNextError)), errors.As(err, new(*groups.ActiveError)), errors.As(err, new(*groups.ReplayError)),
		errors.As(err, new(*readmodel.BehindError)):
		return http.StatusConflict
	case is(journal.ErrThrottled, journal.ErrUnavailable, subscriber.ErrFenced, context.DeadlineExceeded), errors.As(err, new(*unavailableError)):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
