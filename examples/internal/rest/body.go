package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// ErrSlowBody says that the body of a request has not come in the 30 seconds that it has, with
// status 408.
var ErrSlowBody = errors.New("the body did not come in time")

// timedBody is a body that has to come in time: a read of it does not end with the context.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func timed(w http.ResponseWriter, body io.ReadCloser, timeout time.Duration) io.ReadCloser {
	if body == nil {
		return http.NoBody
	}
	if body == http.NoBody {
		return body
	}
	t := timedBody{body, http.NewResponseController(w)}
	_ = t.control.SetReadDeadline(time.Now().Add(timeout)) // where it is not supported there is none
	return t
}

func (t timedBody) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		// From now on the server reads to see whether the client is there, and a deadline would
		// look as if it were gone.
		_ = t.control.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("%w: %w", ErrSlowBody, err)
	}
	return n, err
}
