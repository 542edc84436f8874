package dynamolocal

import (
	"context"
	"errors"
	"time"
)

// Restart kills a started emulator and starts it again on the same port, with the tables in
// [Options.DBPath]. Tables in memory are lost. The returned Server replaces s, which has ended even
// if Restart returns an error. Clients need no change.
func (s *Server) Restart(ctx context.Context) (*Server, error) {
	if s.process == nil {
		return nil, errors.New("restart DynamoDB Local: it was not started here")
	}
	s.Kill()
	for attempt := 1; ; attempt++ {
		next, err := s.again(ctx)
		// The port is not always free immediately. An engine takes a moment, and a client that
		// connects to the old server may get this port for its own end of the connection.
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
