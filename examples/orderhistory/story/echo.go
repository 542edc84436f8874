package story

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/examples/orderhistory/service"
)

// echo has the policies handle messages again, out of turn: now and then one that they have handled
// some time ago, after others of the same order.
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
		again.SetContext(context.WithoutCancel(msg.Context())) // it ends with the ack
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

// exchange keeps what handles a message again, and returns one that it has kept for long enough.
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
