package process

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
)

// sendings are the calls of the publisher that have not returned, by the UUID of their command. A
// publisher cannot be interrupted. If it hangs, another attempt at the same command waits for the
// running call, so each command has at most one goroutine.
type sendings struct {
	mu  sync.Mutex
	now map[string]*sending
}

type sending struct {
	done chan struct{}
	err  error // set when it is done
}

// send publishes a command and waits until it is published or ctx ends.
func (s *sendings) send(ctx context.Context, publisher message.Publisher, c command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	own := s.begin(ctx, publisher, c)
	select {
	case <-own.done:
		return own.err
	case <-ctx.Done():
		return fmt.Errorf("the publisher does not return: %w", ctx.Err())
	}
}

func (s *sendings) begin(ctx context.Context, publisher message.Publisher, c command) *sending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if under := s.now[c.message.UUID]; under != nil {
		return under
	}
	own := &sending{done: make(chan struct{})}
	if s.now == nil {
		s.now = map[string]*sending{}
	}
	s.now[c.message.UUID] = own
	go func() {
		defer func() {
			// Watermill's Recoverer runs in another goroutine.
			if cause := recover(); cause != nil {
				own.err = fmt.Errorf("the publisher panics: %v\n%s", cause, debug.Stack())
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.now, c.message.UUID)
			close(own.done)
		}()
		c.message.SetContext(ctx)
		own.err = publisher.Publish(c.topic, c.message)
	}()
	return own
}
