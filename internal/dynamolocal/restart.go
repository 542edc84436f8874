package dynamolocal

import (
	"context"
	"errors"
	"time"
)

// Restart kills a started emulator and starts it again on the same port, with what its
// [Options.DBPath] holds; tables in memory are gone. The returned Server takes the place of this
// one, which has ended, also when there is an error. Clients need not be told.
func (s *Server) Restart(ctx context.Context) (*Server, error) {
	if s.process == nil {
		return nil, errors.New("restart DynamoDB Local: it was not started here")
	}
	s.Kill()
	for attempt := 1; ; attempt++ {
		next, err := s.again(ctx)
		// The port is not always free at once: an engine takes a moment, and a client that asks for
		// the old server may be given this very port for its own end of the connection.
		if !errors.Is(err, errPortTaken) || attempt == portAttempts {
			return next, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-time.After(pollInterval):
		}
	}
}
