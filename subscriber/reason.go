package subscriber

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// NackReason is a message.HandlerMiddleware that reports the error of a handler to the subscriber,
// because a nack has no reason. [Config.Failures] then records, logs or publishes the error of the
// last attempt, and package groups shows it for blocked aggregates.
//
// Put it outside of middlewares that retry or that recover from panics, and inside of those that
// drop errors. The handlers of packages projection and projection/sqlprojection need no middleware.
func NackReason(h message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		ctx := msg.Context() // the handler's middlewares may change it
		produced, err := h(msg)
		SetNackReason(ctx, err)
		return produced, err
	}
}

// SetNackReason reports to the subscriber why a message is going to be nacked. It is for handlers
// without [NackReason]. The last call before the nack counts, and nil removes the reason. It
// ignores contexts that do not belong to a message of this package.
func SetNackReason(ctx context.Context, err error) {
	if c, ok := fromContext(ctx); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reason = err
	}
}

// cause returns the known reason why an event could not be handled.
func (f *failure) cause() error {
	switch {
	case f.reason == nil:
		return f.err
	case f.err == errNacked: //nolint:errorlint // it is that very one
		return f.reason
	default:
		return fmt.Errorf("%w: %w", f.err, f.reason)
	}
}

// briefError limits the text of an error to the part that is stored, for logs and messages. A
// handler's error may be long, or not be text.
type briefError struct{ err error }

func (e briefError) Error() string { return checkpoint.Bounded(e.err.Error()) }
func (e briefError) Unwrap() error { return e.err }

// reasonOf returns the text that is stored for an error that occurred a number of times in a row.
// most is its maximum length in bytes. If the Error method panics, the text shows the panic.
func reasonOf(cause error, failures, most int) string {
	often := ", " + times(failures)
	return checkpoint.BoundedTo(fmt.Sprint(cause), most-len(often)) + often
}

// times returns a number of times in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprint(n, " times")
}
