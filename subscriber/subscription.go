package subscriber

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// subscription is one call of Subscribe: a member of the group that waits for the
// lease of the topic, and works while it holds it. One member tails all shards of a topic; the others
// of its group stand by.
type subscription struct {
	ctx        context.Context // Subscribe's
	config     Config
	checkpoint *checkpoint.Store
	topic      string
	key        checkpoint.LeaseKey
	owner      string
	logger     watermill.LoggerAdapter
	stats      *counters
	out        chan *message.Message
}

func (sub *Subscriber) newSubscription(ctx context.Context, topic string) *subscription {
	owner := uuid.NewString()
	return &subscription{
		ctx: ctx, config: sub.config, checkpoint: sub.checkpoint, topic: topic, owner: owner, stats: &sub.stats,
		key: checkpoint.LeaseKey{Group: sub.config.ConsumerGroup, Topic: topic},
		logger: sub.logger.With(watermill.LogFields{
			"topic": topic, "consumer_group": sub.config.ConsumerGroup, "member": owner,
		}),
		out: make(chan *message.Message),
	}
}

// run works until ctx ends, and closes the output.
func (s *subscription) run(ctx context.Context, seen checkpoint.Lease) {
	defer close(s.out)
	for ctx.Err() == nil {
		lease, asOf, ok := s.acquire(ctx, seen)
		if !ok {
			return
		}
		s.logger.Debug("Took the lease", watermill.LogFields{"epoch": lease.Epoch})
		s.hold(ctx, lease, asOf)
		seen = lease
	}
}

// acquire waits for the lease: until its owner released it, or has not shown a sign of
// life for LeaseDuration by this process's clock. Seen is the lease as it was just now.
func (s *subscription) acquire(ctx context.Context, seen checkpoint.Lease) (lease checkpoint.Lease, asOf time.Time, ok bool) {
	since := time.Now()
	for ctx.Err() == nil {
		if seen.Owner == "" || time.Since(since) >= s.config.LeaseDuration {
			asOf = time.Now()
			lease, err := s.checkpoint.TakeLease(ctx, s.key, s.owner, seen)
			if err == nil {
				return lease, asOf, true
			}
			if !errors.Is(err, ErrFenced) {
				s.complain(ctx, "Cannot take the lease, will try again", err)
			}
		}
		s.pause(ctx, s.config.LeaseDuration/10)
		now, err := s.checkpoint.ReadLease(ctx, s.key)
		if err != nil {
			s.complain(ctx, "Cannot read the lease, will try again", err)
		} else if now != seen {
			seen, since = now, time.Now()
		}
	}
	return lease, asOf, false
}

// hold works under the lease and renews it. Where that fails for too long the work stops
// before another member may take over.
func (s *subscription) hold(ctx context.Context, lease checkpoint.Lease, asOf time.Time) {
	session := newSession(s, lease)
	done := make(chan struct{})
	// The lease is renewed to the end of the session, which may be after that of ctx.
	renew, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(done)
		defer cancel()
		session.run(ctx)
	}()
	beat := time.NewTicker(s.config.LeaseDuration / 4)
	defer beat.Stop()
	expiry := time.AfterFunc(time.Until(asOf.Add(s.config.LeaseDuration)), func() { session.lost(ErrFenced) })
	defer expiry.Stop()
	for {
		select {
		case <-done:
			s.release(ctx, session)
			return
		case <-beat.C:
			asOf = time.Now()
			once, cancel := context.WithTimeout(renew, s.config.LeaseDuration/2)
			err := s.checkpoint.RenewLease(once, s.key, lease)
			cancel()
			switch {
			case err == nil:
				expiry.Reset(time.Until(asOf.Add(s.config.LeaseDuration)))
			case !session.lost(err):
				// Not an error yet: it holds for most of its duration still.
				s.logger.Info("Cannot renew the lease, will try again", watermill.LogFields{"err": err})
			}
		}
	}
}

func (s *subscription) release(ctx context.Context, session *session) {
	// Also after a loss of the lease that was none, such as one's own: then nobody has to wait for its end.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if err := s.checkpoint.ReleaseLease(end, s.key, session.lease); err != nil && !errors.Is(err, ErrFenced) {
		s.logger.Error("Cannot release the lease, another member waits until it expires", err, nil)
	}
}

func (s *subscription) complain(ctx context.Context, msg string, err error) {
	if ctx.Err() == nil {
		s.logger.Error(msg, err, nil)
	}
}

// pause waits for about d.
func (s *subscription) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
