package subscriber

import (
	"context"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// session is a subscription's work under one term of its lease. Everything it knows
// of positions is dropped with it.
type session struct {
	config  Config
	journal *journal.Journal
	// raw is what is read: payloads are decoded when their turn comes, side by side in the lanes, so that
	// neither a key that cannot be had nor one that is slow to come holds up other aggregates.
	raw        *journal.Journal
	checkpoint *checkpoint.Store
	topic      string
	lease      checkpoint.Lease
	// firstTerm: nobody has ever held the lease before, so the checkpoint table has
	// nothing of this group and topic.
	firstTerm bool
	logger    watermill.LoggerAdapter
	stats     *counters
	out       chan<- *message.Message

	shards []*shard
	lanes  *lanes
	budget *budget

	// messageCtx is the parent of the messages' contexts. It has the values of Subscribe's context, and
	// ends when the session abandons what is out: an ack that comes later does not count. It
	// does not end with Subscribe's context, or each graceful stop would cut off handlers in mid-work.
	messageCtx    context.Context
	cancelMessage context.CancelFunc
	abandoned     chan struct{}
	abandonOnce   sync.Once
	// stopping is closed when no further message may go out.
	stopping     chan struct{}
	stoppingOnce sync.Once
	// fenced is closed when the lease turns out to be another's.
	fenced     chan struct{}
	fencedOnce sync.Once
}

// writeTimeout bounds a flush and the release of a lease, which go on when the session ends.
const writeTimeout = 5 * time.Second

func newSession(sub *subscription, lease checkpoint.Lease) *session {
	s := &session{
		config: sub.config, journal: sub.config.Journal, raw: sub.config.Journal.Raw(), checkpoint: sub.checkpoint,
		topic: sub.topic, lease: lease, stats: sub.stats, out: sub.out,
		logger:   sub.logger.With(watermill.LogFields{"epoch": lease.Epoch}),
		budget:   &budget{free: sub.config.BufferBytes},
		stopping: make(chan struct{}), fenced: make(chan struct{}), abandoned: make(chan struct{}),
	}
	_, own := s.config.Positions.(*checkpoint.Store)
	s.firstTerm = own && lease.Epoch == 1
	s.messageCtx, s.cancelMessage = context.WithCancel(context.WithoutCancel(sub.ctx))
	s.lanes = &lanes{max: sub.config.MaxInFlight, serve: s.serve}
	for n := range s.journal.Shards() {
		s.shards = append(s.shards, newShard(s, n))
	}
	return s
}

// run works until ctx ends (then it is graceful) or the lease is lost (then it
// stops where it stands).
func (s *session) run(ctx context.Context) {
	defer s.abandon()
	work, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-s.fenced:
			stop()
		case <-work.Done():
		}
	}()

	unwatch := s.journal.Watch(s.topic, func(id aggregate.ID, version uint64) {
		s.shards[s.journal.Shard(id)].wake(id, version)
	})
	defer unwatch()

	var workers sync.WaitGroup
	for _, sh := range s.shards {
		workers.Add(1)
		go func() {
			defer workers.Done()
			s.runShard(work, sh)
		}()
	}
	workers.Add(1)
	go func() {
		defer workers.Done()
		s.flushing(work, context.WithoutCancel(ctx))
	}()

	<-work.Done()
	s.stoppingOnce.Do(func() { close(s.stopping) })
	s.lanes.stop()
	if s.isFenced() {
		s.abandon()
	}
	// Handlers have time to ack what they have.
	timeout := time.AfterFunc(s.config.CloseTimeout, s.abandon)
	defer timeout.Stop()
	workers.Wait()
	s.lanes.wait()
	if !s.isFenced() {
		s.flush(context.WithoutCancel(ctx), true)
	}
}

func (s *session) abandon() {
	s.abandonOnce.Do(func() { close(s.abandoned) })
	s.cancelMessage()
}

func (s *session) runShard(ctx context.Context, sh *shard) {
	for {
		err := sh.start(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil || s.lost(err) {
			return
		}
		s.logger.Error("Cannot take over a shard, will try again", err, watermill.LogFields{"shard": sh.number})
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.config.MaxPollInterval):
		}
	}
	sh.poll(ctx)
}

// lost tells, and notes, that an error means the end of the lease.
func (s *session) lost(err error) bool {
	if !isFenced(err) {
		return false
	}
	s.fencedOnce.Do(func() {
		s.logger.Info("Lost the lease, another member of the group goes on", nil)
		close(s.fenced)
	})
	return true
}

func (s *session) isFenced() bool {
	select {
	case <-s.fenced:
		return true
	default:
		return false
	}
}

func (s *session) isStopping() bool {
	select {
	case <-s.stopping:
		return true
	default:
		return false
	}
}

// streamBytes is how much one stream may hold in memory, beside a single event of any size: so little that
// handlers which hang in all lanes but one leave a part of the buffer to the rest. Less than some events would
// make reading them dear.
func (s *session) streamBytes() int {
	return max(minStreamBytes, s.config.BufferBytes/(2*s.config.MaxInFlight))
}

const minStreamBytes = 16 << 10

func (s *session) now() time.Time { return s.journal.Config().Now() }
