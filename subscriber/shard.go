package subscriber

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/eventlog"
)

// shard is a member's work on one logical shard in one term. Everything it knows of positions is
// dropped with it.
type shard struct {
	*subscription
	number int
	key    checkpoint.Shard
	owner  uint64
	epoch  uint64
	since  time.Time // the group leaves out what occurred before; zero for nothing
	// fresh: nobody has owned the shard since the group began or was reset, so the checkpoint table
	// has nothing of it.
	fresh bool

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
	// resumed is how often the group was resumed, as far as is known here: it counts for attempts
	// that begin now.
	resumed atomic.Uint64
	// revisions counts the writes to the list of those behind.
	revisions atomic.Uint64

	// The poller alone uses these.
	live     eventlog.Cursor // the live read has read up to here
	trailing []trailingRead
	looks    []looked // of the live read, those that came to the end of the tail

	mu      sync.Mutex
	ended   bool
	serving sync.WaitGroup     // lanes; none is added once it has ended
	streams map[string]*stream // by id value
	// unfinished and dirty are the streams that a flush has to look at: with events
	// left to do, and with a position that is not stored yet.
	unfinished map[*stream]struct{}
	dirty      map[*stream]struct{}
	stored     chan struct{} // closed when fewer streams are dirty; nil while nobody waits
	settled    int64         // up to where the tail is final, in milliseconds, for the flusher
	saved      int64         // the stored cursor
	caughtUp   bool          // the live read has reached the end of the tail
	forgetful  bool          // streams were forgotten
	swept      time.Time
	savedSwept time.Time
	parked     []*stream // as former owners have said, which is to be verified
}

// group returns the group as position stores know it.
func (sh *shard) group() Group { return Group(sh.key.Group) }

func (m *member) newShard(number int, r checkpoint.Roster) *shard {
	sh := &shard{
		subscription: m.subscription, number: number, owner: m.number, epoch: r.Epochs[number], since: r.Start,
		key: checkpoint.Shard{
			Group: checkpoint.Group{Name: m.key.Group, Resets: r.Resets}, Topic: m.topic, Number: number,
		},
		trailing:  newTrailingReads(m.config.TrailingDelay),
		abandoned: make(chan struct{}), stopping: make(chan struct{}),
		streams: map[string]*stream{}, unfinished: map[*stream]struct{}{}, dirty: map[*stream]struct{}{},
	}
	sh.resumed.Store(r.Resumed)
	_, own := m.config.Positions.(*tablePositions)
	sh.fresh = own && sh.epoch == r.Base+1
	sh.messageCtx, sh.cancelMessage = context.WithCancel(context.WithoutCancel(m.ctx))
	return sh
}

// run works until the shard is stopped (then it is graceful) or lost (then it stops where it
// stands), and returns when it has come to rest.
func (sh *shard) run(ctx context.Context) {
	defer sh.abandon()
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	for _, worker := range []func(context.Context){sh.tail, sh.flushing} {
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
	sh.end()
	sh.serving.Wait()
	workers.Wait()
	if !sh.isLost() {
		sh.flush(ctx, true)
		sh.abandon()
		sh.shutOut(ctx)
	}
	sh.forgetAll()
}

// shutOut keeps what handlers have sent from moving positions once the shard is free: whoever waits
// for that, to clear a read model say, relies on it. The epoch is the next owner's, who claims
// positions itself. That a handler begins nothing more is seen to by [Position].
func (sh *shard) shutOut(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	sh.mu.Lock()
	var rows []func() error
	for _, st := range sh.streams {
		if st.position.settled() {
			continue
		}
		rows = append(rows, func() error {
			_, _, err := sh.config.Positions.Claim(ctx, sh.group(), st.id, sh.epoch+1)
			return err
		})
	}
	sh.mu.Unlock()
	sh.failed("Cannot shut out what handlers have sent: their transactions may still move positions", sh.inParallel(rows))
}

// stop ends the work gracefully.
func (sh *shard) stop() { sh.stoppingOnce.Do(func() { close(sh.stopping) }) }

// lose ends it at once: the shard is another's.
func (sh *shard) lose() {
	if sh.lost.CompareAndSwap(false, true) {
		sh.logger.Info("Lost a shard, another member of the group goes on", watermill.LogFields{"shard": sh.number, "epoch": sh.epoch})
	}
	sh.abandon()
	sh.stop()
}

// fenced reports, and notes, that an error means that the shard is another's.
func (sh *shard) fenced(err error) bool {
	if !errors.Is(err, ErrFenced) {
		return false
	}
	sh.lose()
	return true
}

func (sh *shard) abandon() {
	sh.abandonOnce.Do(func() { close(sh.abandoned) })
	sh.cancelMessage()
}

func (sh *shard) isAbandoned() bool {
	select {
	case <-sh.abandoned:
		return true
	default:
		return false
	}
}

func (sh *shard) isLost() bool { return sh.lost.Load() }

func (sh *shard) isStopping() bool {
	select {
	case <-sh.stopping:
		return true
	default:
		return false
	}
}

// enter lets a lane serve a stream, until the shard ends.
func (sh *shard) enter() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.ended {
		return false
	}
	sh.serving.Add(1)
	return true
}

func (sh *shard) end() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.ended = true
}
