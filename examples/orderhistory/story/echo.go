package story

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/examples/orderhistory/service"
)

// echo makes the policies handle some messages again later, after other messages of the same order.
type echo struct {
	repeated atomic.Int64

	mu   sync.Mutex
	seen int
	kept []func() error
}

const (
	keepEvery = 4  // messages
	keepFor   = 10 // kept messages
)

func (e *echo) repeat(next message.HandlerFunc) message.HandlerFunc {
	return func(msg *message.Message) ([]*message.Message, error) {
		again := msg.Copy()
		// the context of the message ends with the ack
		again.SetContext(context.WithoutCancel(msg.Context()))
		produced, err := next(msg)
		if err != nil || !strings.HasPrefix(message.HandlerNameFromCtx(msg.Context()), service.PoliciesGroup) {
			return produced, err
		}
		if old := e.exchange(func() error { _, err := next(again); return err }); old != nil && old() == nil {
			e.repeated.Add(1)
		}
		return produced, nil
	}
}

// exchange stores the handling of a message for later, and returns one that was stored long enough
// ago.
func (e *echo) exchange(handle func() error) (old func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen++; e.seen%keepEvery > 0 {
		return nil
	}
	e.kept = append(e.kept, handle)
	if len(e.kept) > keepFor {
		old, e.kept = e.kept[0], e.kept[1:]
	}
	return old
}
