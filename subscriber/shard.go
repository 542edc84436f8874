package subscriber

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/subscriber/internal/membership"
	"github.com/millrace-dev/millrace/subscriber/internal/sequence"
	"github.com/millrace-dev/millrace/subscriber/internal/source"
)

// shard is the work of a member on one shard in one term. It keeps nothing that it knows about
// positions after the term.
//
// The source passes the events that exist to the sequencer. The deliverer asks the sequencer for
// the next event and reports the result. The committer asks it what to store. The deliverer calls
// the committer if something must be stored at once. It passes deferred events to the deferrals,
// which return them to the workers when they are due.
type shard struct {
	*term
	source         *source.Source
	deliverer      *deliverer
	committer      *committer
	sequencer      *sequencer
	deferrals      *deferrals
	handlersFenced bool
	settled        bool // a visit has ended because nothing was left to do
}

type (
	stream    = sequence.Stream[work]
	sequencer = sequence.Sequencer[work]
)

// work is what the deliverer and the committer keep with a stream.
type work struct {
	delivery delivery
	counted  bool // an attempt was stored beforehand in this term, or an event was acked
	position streamPosition
	// listing is held by the committer from before a write of the entry on the behind list until
	// its result is known.
	listing sync.Mutex
}

func (s *subscription) newShard(t membership.Term) *shard {
	sh := &shard{term: s.newTerm(t)}
	limits := s.sequenceLimits()
	limits.ReportedOnly = s.visit != nil && !sh.sweep
	if s.visit != nil && t.Unclean {
		s.lanes.Limit(1) // so that an event is not suspected because of another one
	}
	sh.sequencer = sequence.New(limits, s.budget, &s.stats.duplicates, s.now, func(st *stream, failed bool) {
		s.lanes.Run(turn{deliverer: sh.deliverer, stream: st}, failed)
	})
	c := &s.config
	sh.source = source.New(source.Config{
		Journal: s.raw, Checkpoint: s.checkpoint, Key: sh.key, Sequencer: sh.sequencer, Budget: s.budget, Memory: s.memory,
		Counters: &s.stats.Counters, Logger: s.logger, Busy: s.lanes.Busy, Stopping: sh.stopping,
		PollInterval: c.Timing.PollInterval, MaxPollInterval: c.Timing.MaxPollInterval, TrailingDelay: c.Timing.TrailingDelay, ReconcileInterval: c.Timing.ReconcileInterval,
	})
	sh.committer = newCommitter(sh.term, sh.sequencer, t.Membership)
	sh.deferrals = newDeferrals(sh.term, sh.committer.fresh, func(e *deferral) {
		s.lanes.Run(turn{deliverer: sh.deliverer, deferred: e}, true)
	})
	sh.deliverer = newDeliverer(sh.term, sh.source, sh.sequencer, sh.committer, sh.deferrals, t.Membership)
	return sh
}

// Run works until the shard is stopped or lost, and returns when the work has ended. After a stop,
// messages are finished and positions are stored. After a loss, the work ends at once.
func (sh *shard) Run() {
	defer sh.abandon()
	defer sh.memory.Enter()()
	work, cancel := context.WithCancel(context.WithoutCancel(sh.ctx))
	defer cancel()
	var workers sync.WaitGroup
	workersOf := []func(context.Context){sh.tail, sh.committer.run, sh.deferrals.run}
	switch {
	case sh.visit != nil:
		workersOf = []func(context.Context){sh.catchUp, sh.committer.run}
	case sh.broadcast:
		workersOf = []func(context.Context){sh.tail, sh.committer.run}
	}
	for _, worker := range workersOf {
		workers.Add(1)
		go func() {
			defer workers.Done()
			worker(work)
		}()
	}
	<-sh.stopping
	cancel()
	if sh.IsLost() {
		sh.abandon()
	}
	// Handlers have time to ack their messages.
	timeout := time.AfterFunc(sh.config.CloseTimeout, sh.abandon)
	defer timeout.Stop()
	sh.sequencer.End()
	sh.deliverer.end()
	workers.Wait()
	if !sh.IsLost() {
		sh.committer.finish(sh.deferrals.nextDue)
		sh.abandon()
	}
	if sh.visit != nil {
		sh.pace.stop()
		sh.leaveRest()
	}
	sh.handlersFenced = sh.committer.fenceHandlers()
	sh.sequencer.ForgetAll()
}

// IsFenced reports, after the work has ended, that no transaction of the shard's handlers can
// commit any more.
func (sh *shard) IsFenced() bool { return sh.handlersFenced }

// tail reads the tail from the former owner's cursor on, until the context ends.
func (sh *shard) tail(ctx context.Context) {
	from, begun, _ := sh.begin(ctx)
	for wait := sh.untilStart(); begun && wait > 0 && ctx.Err() == nil; wait = sh.untilStart() {
		// The clock may be changed meanwhile.
		retry.Sleep(ctx, retry.Jitter(min(wait, time.Minute)))
	}
	if begun {
		sh.source.Run(ctx, from)
	}
}

// begin passes the progress of former owners to the sequencer, and returns the cursor. It returns
// false when ctx ends or the shard is lost, and then the last error before that, if any.
func (sh *shard) begin(ctx context.Context) (from int64, begun bool, refused error) {
	for {
		from, err := sh.committer.begin(ctx)
		if err == nil {
			return from, true, nil
		}
		if sh.loseIfFenced(err) {
			return 0, false, nil
		}
		if refused = cmp.Or(refusal(err), refused); ctx.Err() != nil {
			return 0, false, refused
		}
		sh.logger.Error("Cannot take over a shard, will try again", err, watermill.LogFields{"shard": sh.number})
		retry.Sleep(ctx, retry.Jitter(sh.config.Timing.MaxPollInterval))
	}
}

// untilStart returns the time until the group begins, which may be in the future.
func (sh *shard) untilStart() time.Duration { return sh.committer.since.Sub(sh.now()) }

// turn is a stream or a deferred event that waits for a lane, and its deliverer.
type turn struct {
	deliverer *deliverer
	stream    *stream
	deferred  *deferral // nil for a stream
}

// serve serves the stream or the deferred event, and reports whether the stream must be served
// again.
func (t turn) serve() (again bool) {
	if t.deferred != nil {
		t.deliverer.retry(t.deferred)
		return false
	}
	return t.deliverer.serve(t.stream)
}
