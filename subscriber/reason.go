package subscriber

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// NackReason is a message.HandlerMiddleware that reports to the subscriber why a handler fails: a
// nack itself has no reason. What [Config.Failures] gives up is recorded, logged or poisoned with
// the error of the last attempt then, and package groups shows it for aggregates that are blocked.
// Put it outside of middlewares that retry or that recover from panics, and inside of those that
// drop errors. The handlers of packages projection and projection/sqlprojection do the same by
// themselves.
func NackReason(h message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		ctx := msg.Context() // as it is before the handler, whose middlewares may change it
		produced, err := h(msg)
		SetNackReason(ctx, err)
		return produced, err
	}
}

// SetNackReason reports the subscriber why a message is going to be nacked, for handlers without
// [NackReason]. The last call before the nack counts; nil takes a reason back. Contexts that are
// not of a message of this package are left alone.
func SetNackReason(ctx context.Context, err error) {
	if c, ok := fromContext(ctx); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reason = err
	}
}

// cause is why an event could not be handled, as far as anybody has told.
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

// briefError has as much of an error's text as is stored of it, for logs and messages: a handler's
// may be long, or not be text.
type briefError struct{ err error }

func (e briefError) Error() string { return checkpoint.Bounded(e.err.Error()) }
func (e briefError) Unwrap() error { return e.err }

// reasonOf is what is stored of an error that came some times in a row: up to a number of bytes of
// it and of how often. An Error method that panics shows in the text.
func reasonOf(cause error, failures, most int) string {
	often := ", " + times(failures)
	return checkpoint.BoundedTo(fmt.Sprint(cause), most-len(often)) + often
}

// times says how often, in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprint(n, " times")
}
