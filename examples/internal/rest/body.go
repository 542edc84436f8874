package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// ErrSlowBody reports that the body of a request did not arrive within 30 seconds. The status is
// 408.
var ErrSlowBody = errors.New("the body did not come in time")

// timedBody is a body that must arrive in time. A read of it does not end with the context.
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
	// If w does not support deadlines, the body has no time limit.
	_ = t.control.SetReadDeadline(time.Now().Add(timeout))
	return t
}

func (t timedBody) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		// From now on the server reads to find out whether the client is connected. A deadline
		// would look like a lost connection.
		_ = t.control.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("%w: %w", ErrSlowBody, err)
	}
	return n, err
}
