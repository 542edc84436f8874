package subscriber

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"golang.org/x/time/rate"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/history"
	"github.com/millrace-dev/millrace/subscriber/internal/lanes"
	"github.com/millrace-dev/millrace/subscriber/internal/membership"
	"github.com/millrace-dev/millrace/subscriber/internal/sequence"
	"github.com/millrace-dev/millrace/subscriber/internal/source"
)

// subscription is one call of Subscribe. It contains what the shards share that its member works
// on.
type subscription struct {
	member *membership.Member[*shard]

	ctx    context.Context // the context of Subscribe
	config Config
	// broadcast reports that there is no group, so nothing is stored.
	broadcast bool
	limits    limits
	journal   *engine.Engine
	// raw reads records without decoding them. Each payload is decoded in its lane when it is due.
	// So a key that is missing, or slow to arrive, does not delay other aggregates.
	raw        *engine.Engine
	checkpoint *checkpoint.Store
	history    history.History
	topic      string
	logger     watermill.LoggerAdapter
	stats      *counters
	out        chan *message.Message

	// closing is the context of writes at the end of the subscription. It ends in time for Close to
	// return.
	closing context.Context
	close   context.CancelFunc

	lanes   *lanes.Pool[turn]
	budget  *sequence.Budget
	memory  *sequence.Memory
	pace    *pace
	hints   *rate.Limiter // limits the reads because of hints from outside
	writers chan struct{} // one element for each row that is being written

	hanging atomic.Int64 // handlers that have not returned within CloseTimeout

	since time.Time // when the subscription began

	// The following are zero outside of bursts. visit is the current visit.
	burst *burst
	inbox *inbox
	visit *visit
	// acceptsUntil is the time until which a visit takes commits of this process, in nanoseconds.
	acceptsUntil atomic.Int64
}

const (
	// hintReads is the number of reads a second because of hints from outside. More hints only
	// cause reads of the tail, so forged ones cost little.
	hintReads = 100
	// rowWriters is the number of rows that are written concurrently.
	rowWriters = 16
	// readTimeout limits a read, so that a connection that hangs blocks nothing for long.
	readTimeout = 10 * time.Second
	// writeTimeout limits a write of a row, which continues when the subscription ends.
	writeTimeout = 5 * time.Second
	// writeOnClose is the time after CloseTimeout for storing positions and leaving the group.
	writeOnClose = 900 * time.Millisecond
)

func (sub *Subscriber) newSubscription(ctx context.Context, topic string) *subscription {
	j, c := sub.config.Journal.Internal(), sub.config
	closing, closeNow := context.WithCancel(context.WithoutCancel(ctx))
	s := &subscription{
		ctx: ctx, closing: closing, close: closeNow, burst: burstOf(ctx),
		config: c, broadcast: sub.broadcast, limits: sub.limits, topic: topic,
		journal: j, raw: j.Raw(), checkpoint: sub.checkpoint, history: sub.history,
		logger: sub.logger.With(watermill.LogFields{"topic": topic, "consumer_group": c.ConsumerGroup}),
		stats:  &sub.stats, out: make(chan *message.Message),
		lanes:  lanes.New(c.MaxInFlight, turn.serve),
		budget: sequence.NewBudget(c.BufferBytes, c.MaxInFlight), memory: sequence.NewMemory(c.StateBytes),
		pace: newPace(maxCredit), hints: rate.NewLimiter(hintReads, hintReads), writers: make(chan struct{}, rowWriters),
	}
	if s.burst != nil {
		s.config.CloseTimeout = min(s.config.CloseTimeout, s.burst.quarter())
		s.inbox, s.hints = s.burst.newInbox(topic), rate.NewLimiter(rate.Inf, 0)
	}
	_, own := s.config.Positions.(*tablePositions)
	rows := rowsOf(s.config.Positions)
	s.checkpoint = s.checkpoint.In(rows)
	s.member = membership.New(membership.Config{
		Checkpoint: s.checkpoint, Key: checkpoint.Key{Group: s.config.ConsumerGroup, Topic: topic}, Shards: s.config.Journal.Shards(),
		Lease: s.config.Timing.LeaseDuration, Name: s.config.MemberName, Now: s.now, Logger: s.logger, Start: s.config.Start.Time,
		ShardOf: func(value string) int { return j.Shard(aggregate.ID{Type: topic, Value: value}) }, ExternalPositions: !own && rows == nil, Rows: rows,
		NoReplay: s.config.NoReplay, Closing: closing,
		Accepts: func(r checkpoint.Membership) error { return sub.accepts(topic, r) },
	}, s.newShard)
	return s
}

// run works until ctx ends, and closes the output.
func (s *subscription) run(ctx context.Context, seen checkpoint.Membership) {
	defer close(s.out)
	defer s.close()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(s.config.CloseTimeout+writeOnClose, s.close) })()
	defer func() { s.lanes.Stop(); s.lanes.Wait() }()
	defer s.journal.Watch(s.topic, s.waking((*sequencer).Wake))()
	defer s.journal.WatchHints(s.topic, s.waking((*sequencer).Hint))()
	if s.broadcast {
		s.member.RunAlone(ctx, s.since)
		return
	}
	defer s.reconciling(ctx)()
	s.member.Run(ctx, s.since, seen)
}

// waking returns a function that passes a report of a commit to the sequencer of its shard, if the
// member works on it.
func (s *subscription) waking(wake func(*sequencer, aggregate.ID, uint64) bool) func(aggregate.ID, uint64) {
	return func(id aggregate.ID, version uint64) {
		if sh, found := s.member.Work(s.journal.Shard(id)); found {
			wake(sh.sequencer, id, version)
		}
	}
}

// reconciling starts a goroutine that reconciles the shards.
func (s *subscription) reconciling(ctx context.Context) (stop func()) {
	if s.config.Timing.ReconcileInterval < 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		source.Reconcile(ctx, s.config.Timing.ReconcileInterval, func(yield func(*source.Source) bool) {
			for sh := range s.member.All() {
				if !yield(sh.source) {
					return
				}
			}
		})
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (s *subscription) sequenceLimits() sequence.Limits {
	var began time.Time
	if s.visit != nil {
		began = s.now()
	}
	return sequence.Limits{
		Began: began, Memory: s.memory, Broadcast: s.broadcast, IdleStreams: s.limits.idleStreams, MaxUnstored: s.limits.maxUnstored,
		MaxUnfinished: s.limits.maxUnfinished, PacedAfter: s.pacedAfter(), PacedFor: refill, BehindAfter: s.config.Timing.BehindAfter, Hints: s.hints, Rare: s.rare,
	}
}

// rare reports whether the tail is polled rarely because hints announce commits.
func (s *subscription) rare() bool { return s.journal.RarePoll() > 0 }

func (s *subscription) now() time.Time { return s.journal.Config.Now() }

// inParallel writes rows concurrently, within the limit of the subscription, and returns the
// errors.
func (s *subscription) inParallel(rows []func() error) []error {
	var writers sync.WaitGroup
	errs := make([]error, len(rows))
	for i, write := range rows {
		s.writers <- struct{}{}
		writers.Add(1)
		go func() {
			defer writers.Done()
			errs[i] = write()
			<-s.writers
		}()
	}
	writers.Wait()
	return errs
}
