package millrace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/handled"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/subscriber"
)

// nackReason is subscriber.NackReason for a router whose subscribers log the errors of handlers. It
// nacks the message, so that the router does not log the error too, without the event.
func nackReason(h message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		ctx := msg.Context()
		produced, err := subscriber.NackReason(h)(msg)
		_, silent := handled.LoggerOf(ctx).(watermill.NopLogger)
		if err == nil || silent || ctx.Err() != nil { // it does not wait for a late answer
			return produced, err
		}
		msg.Nack()
		return nil, nil
	}
}

// handling holds the calls of handlers that are running.
type handling struct {
	mu    sync.Mutex
	calls map[*call]struct{}
}

// call is a call of a handler. It holds the first context of the message, because the handler may
// change it.
type call struct {
	ctx   context.Context
	uuid  string
	begun time.Time
}

func newHandling() *handling { return &handling{calls: map[*call]struct{}{}} }

// middleware notes when a handler begins and returns.
func (h *handling) middleware(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		c := &call{msg.Context(), msg.UUID, time.Now()}
		h.mu.Lock()
		h.calls[c] = struct{}{}
		h.mu.Unlock()
		defer func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.calls, c)
		}()
		return next(msg)
	}
}

// mostNamed is the number of running handlers that an error names.
const mostNamed = 10

// stillRunning returns an error that names the handlers that are running, those first that have
// begun first, or nil if there are none.
func (h *handling) stillRunning() error {
	h.mu.Lock()
	calls := slices.SortedFunc(maps.Keys(h.calls), func(a, b *call) int { return a.begun.Compare(b.begun) })
	h.mu.Unlock()
	if len(calls) == 0 {
		return nil
	}
	var named []string
	for _, c := range calls[:min(mostNamed, len(calls))] {
		named = append(named, c.String())
	}
	text := "in handlers: " + strings.Join(named, "; ")
	if more := len(calls) - len(named); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return errors.New(text)
}

// String describes the message of a call, and says for how long it is handled.
func (c *call) String() string {
	what := "message " + printable.Text(c.uuid)
	if r, ok := subscriber.RecordFromContext(c.ctx); ok {
		group, _ := subscriber.ConsumerGroupFromContext(c.ctx)
		what = fmt.Sprintf("event %d of %s (%s) in group %q", r.Number, r.Aggregate, printable.Text(r.EventType), group)
	}
	return fmt.Sprintf("%s for %v", what, time.Since(c.begun).Round(time.Millisecond))
}
