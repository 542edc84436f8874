package subscriber

import (
	"context"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// shard is a member's work on one logical shard in one term. Everything it knows of positions is
// dropped with it. The source tells the sequencer which events there are; the deliverer asks it
// what comes next, and tells what became of it; the committer asks it what to store. The deliverer
// calls the committer where something has to be stored at once, and hands deferred events to the
// deferrals, which bring them back when they are due.
type shard struct {
	*term
	source    *source
	deliverer *deliverer
	committer *committer
	sequencer *sequencer
	deferrals *deferrals
	// unfenced: when it came to rest, transactions of its handlers could still commit.
	unfenced bool
}

func (m *member) newShard(number int, r checkpoint.Membership) *shard {
	sh := &shard{term: m.newTerm(number, r)}
	sh.sequencer = newSequencer(m.config.limits(), m.budget, m.stats, func(st *stream, failed bool) {
		m.lanes.run(turn{deliverer: sh.deliverer, stream: st}, failed)
	})
	sh.source = newSource(sh.term, sh.sequencer)
	sh.committer = newCommitter(sh.term, sh.sequencer, r)
	sh.deferrals = newDeferrals(sh.term, sh.committer.fresh, func(e *deferral) {
		m.lanes.run(turn{deliverer: sh.deliverer, deferred: e}, true)
	})
	sh.deliverer = newDeliverer(sh.term, sh.sequencer, sh.committer, sh.deferrals, r)
	return sh
}

// run works until the shard is stopped (then it is graceful) or lost (then it stops where it
// stands), and returns when it has come to rest.
func (sh *shard) run(ctx context.Context) {
	defer sh.abandon()
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	workersOf := []func(context.Context){sh.tail, sh.committer.run}
	if !sh.config.Broadcast {
		workersOf = append(workersOf, sh.deferrals.run)
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
	if sh.isLost() {
		sh.abandon()
	}
	// Handlers have time to ack what they have.
	timeout := time.AfterFunc(sh.config.CloseTimeout, sh.abandon)
	defer timeout.Stop()
	sh.sequencer.end()
	sh.deliverer.end()
	workers.Wait()
	if !sh.isLost() {
		sh.committer.finish()
		sh.abandon()
	}
	sh.unfenced = !sh.committer.fenceHandlers()
	sh.sequencer.forgetAll()
}

// tail goes on where a former owner was, until the context ends.
func (sh *shard) tail(ctx context.Context) {
	for {
		from, err := sh.committer.begin(ctx)
		if err == nil {
			for wait := sh.untilStart(); wait > 0 && ctx.Err() == nil; wait = sh.untilStart() {
				pause(ctx, min(wait, time.Minute)) // by a clock that may be set
			}
			sh.source.run(ctx, from)
			return
		}
		if ctx.Err() != nil || sh.fenced(err) {
			return
		}
		sh.logger.Error("Cannot take over a shard, will try again", err, watermill.LogFields{"shard": sh.number})
		pause(ctx, sh.config.MaxPollInterval)
	}
}

// untilStart is how long it is until the group begins, which may be in the future.
func (sh *shard) untilStart() time.Duration { return sh.committer.since.Sub(sh.now()) }
