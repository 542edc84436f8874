package subscriber

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// term is the time in which a member owns a logical shard, and how it ends.
type term struct {
	*subscription
	number int // of the shard
	key    checkpoint.Shard
	owner  uint64
	epoch  uint64

	// messageCtx is the parent of the messages' contexts. It has the values of Subscribe's context,
	// and ends when the shard abandons what is out: an ack that comes later does not count. It does
	// not end with Subscribe's context, or each graceful stop would cut off handlers in mid-work.
	messageCtx    context.Context
	cancelMessage context.CancelFunc
	abandoned     chan struct{}
	abandonOnce   sync.Once
	// stopping is closed when no further message may go out.
	stopping     chan struct{}
	stoppingOnce sync.Once
	// lost: the shard turned out to be another's.
	lost atomic.Bool
}

func (m *member) newTerm(number int, r checkpoint.Membership) *term {
	t := &term{
		subscription: m.subscription, number: number, owner: m.number, epoch: r.Epochs[number],
		key: checkpoint.Shard{
			Group: checkpoint.Group{Name: m.key.Group, Resets: r.Resets}, Topic: m.topic, Number: number,
		},
		abandoned: make(chan struct{}), stopping: make(chan struct{}),
	}
	t.messageCtx, t.cancelMessage = context.WithCancel(context.WithoutCancel(m.ctx))
	return t
}

// group returns the group as position stores know it.
func (t *term) group() Group { return Group(t.key.Group) }

// stop ends the work gracefully.
func (t *term) stop() { t.stoppingOnce.Do(func() { close(t.stopping) }) }

// lose ends it at once: the shard is another's.
func (t *term) lose() {
	if t.lost.CompareAndSwap(false, true) {
		t.logger.Info("Lost a shard: another member of the group took it, or an operator edits its rows", watermill.LogFields{"shard": t.number, "epoch": t.epoch})
	}
	t.abandon()
	t.stop()
}

// fenced reports, and notes, that an error means that the shard is another's.
func (t *term) fenced(err error) bool {
	if !errors.Is(err, ErrFenced) {
		return false
	}
	t.lose()
	return true
}

// abandon lets nothing count any more that handlers answer.
func (t *term) abandon() {
	t.abandonOnce.Do(func() { close(t.abandoned) })
	t.cancelMessage()
}

func (t *term) isAbandoned() bool { return isClosed(t.abandoned) }
func (t *term) isStopping() bool  { return isClosed(t.stopping) }
func (t *term) isLost() bool      { return t.lost.Load() }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// failed logs the first of some errors for all, which mostly have one cause.
func (t *term) failed(what string, errs []error) {
	var first error
	rows := 0
	for _, err := range errs {
		switch {
		case err == nil:
		case t.fenced(err):
			return
		default:
			if rows++; rows == 1 {
				first = err
			}
		}
	}
	if first != nil {
		t.logger.Error(what, first, watermill.LogFields{"shard": t.number, "rows": rows})
	}
}
