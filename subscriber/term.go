package subscriber

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/subscriber/internal/membership"
)

// term is the time in which a member owns a shard. It says whether and how the term has ended.
type term struct {
	*subscription
	number int // the number of the shard
	key    checkpoint.Shard
	owner  uint64 // the number of the member
	epoch  uint64
	// sweep reports that the shard is swept. unclean reports that the process that visited it
	// before has ended in the middle of its work. Then a visit because of hints sweeps the shard
	// too, so that it meets the event that was the reason.
	sweep, unclean bool
	pace           *pace

	// messageCtx is the parent of the contexts of messages. It has the values of Subscribe's
	// context. It ends when the shard is given up, and later acks do not count. It does not end
	// with Subscribe's context, because that would interrupt handlers at each graceful stop.
	messageCtx    context.Context
	cancelMessage context.CancelFunc
	abandoned     chan struct{}
	abandonOnce   sync.Once
	// stopping is closed when no further message may be delivered.
	stopping     chan struct{}
	stoppingOnce sync.Once
	// lost reports that another member owns the shard.
	lost atomic.Bool
}

func (s *subscription) newTerm(of membership.Term) *term {
	t := &term{
		subscription: s, number: of.Shard, owner: of.Owner, epoch: of.Epoch, unclean: of.Unclean,
		key: checkpoint.Shard{
			Group: checkpoint.Group{Name: s.config.ConsumerGroup, Resets: of.Membership.Resets}, Topic: s.topic, Number: of.Shard,
		},
		abandoned: make(chan struct{}), stopping: make(chan struct{}), pace: s.pace,
	}
	if s.visit != nil { // a visit of a shard ends while other shards have credits
		t.pace = newPace(max(leastOfVisit, maxCredit/s.visit.size))
	}
	t.sweep = s.visit != nil && (s.visit.sweep || s.visit.swept[of.Shard] || t.unclean)
	t.messageCtx, t.cancelMessage = context.WithCancel(context.WithoutCancel(s.ctx))
	return t
}

// group returns the group as position stores know it.
func (t *term) group() GroupKey { return GroupKey(t.key.Group) }

// Stop ends the work gracefully.
func (t *term) Stop() { t.stoppingOnce.Do(func() { close(t.stopping) }) }

// Lose ends the work at once, because another member owns the shard.
func (t *term) Lose() {
	if t.lost.CompareAndSwap(false, true) {
		t.logger.Info("Lost a shard: another member of the group took it, or an operator edits its rows", watermill.LogFields{"shard": t.number, "epoch": t.epoch})
	}
	t.abandon()
	t.Stop()
}

// loseIfFenced ends the work if an error means that another member owns the shard. It reports
// whether it does.
func (t *term) loseIfFenced(err error) bool {
	if !errors.Is(err, ErrFenced) {
		return false
	}
	t.Lose()
	return true
}

// abandon gives up all messages that are not answered. Later answers do not count.
func (t *term) abandon() {
	t.abandonOnce.Do(func() { close(t.abandoned) })
	t.cancelMessage()
}

func (t *term) isAbandoned() bool { return isClosed(t.abandoned) }
func (t *term) isStopping() bool  { return isClosed(t.stopping) }
func (t *term) IsLost() bool      { return t.lost.Load() }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// failed logs the first of some errors for all of them, because they mostly have one cause.
func (t *term) failed(what string, errs []error) {
	var first error
	rows := 0
	for _, err := range errs {
		switch {
		case err == nil:
		case t.loseIfFenced(err):
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
