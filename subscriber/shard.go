package subscriber

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// shard tails one logical shard of a topic under the epoch of a lease.
type shard struct {
	session *session
	number  int
	key     checkpoint.Shard

	// The poller alone uses these.
	live      journal.Cursor // the first look has read up to here
	trail     journal.Cursor // the second look, which is final, up to here
	nextTrail time.Time

	mu      sync.Mutex
	streams map[string]*stream // by id value
	// unfinished and dirty are the streams that a flush has to look at: with events
	// left to do, and with a position that is not stored yet.
	unfinished map[*stream]struct{}
	dirty      map[*stream]struct{}
	settled    int64 // trail, in milliseconds, for the flusher
	saved      int64 // the stored cursor
	caughtUp   bool  // the first look has reached the end of the tail
	forgetful  bool  // streams were forgotten
}

func newShard(s *session, number int) *shard {
	return &shard{
		session: s, number: number,
		key:     checkpoint.Shard{Group: s.config.ConsumerGroup, Topic: s.topic, Number: number},
		streams: map[string]*stream{}, unfinished: map[*stream]struct{}{}, dirty: map[*stream]struct{}{},
	}
}

// start takes the shard over: its cursor, and what the former owner left behind.
func (sh *shard) start(ctx context.Context) error {
	s := sh.session
	if s.firstTerm {
		return nil // there was no former owner
	}
	progress, err := s.checkpoint.Progress(ctx, sh.key)
	if err != nil {
		return err
	}
	cursor, behind := progress.Cursor, progress.Behind
	for id, head := range behind {
		// The cursor has passed whatever came since it was listed, so the head itself
		// has to tell how far the aggregate goes.
		now, err := s.raw.Head(ctx, id)
		if err != nil && !errors.Is(err, journal.ErrNotFound) {
			return err
		}
		behind[id] = max(head, now.Version)
		// Stamped anew, or a former owner could still take it off the list.
		if err := s.checkpoint.ListBehind(ctx, s.config.ConsumerGroup, id, s.lease.Epoch, behind[id]); err != nil {
			return err
		}
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.live, sh.trail = journal.CursorAt(cursor), journal.CursorAt(cursor)
	sh.settled, sh.saved = cursor.UnixMilli(), cursor.UnixMilli()
	for id, head := range behind {
		st := sh.stream(id)
		st.hear(head)
		st.listed = true
		sh.schedule(st)
	}
	return nil
}

// poll looks at the tail until the context ends.
func (sh *shard) poll(ctx context.Context) {
	s := sh.session
	pause := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(s.config.PollInterval),
		backoff.WithMaxInterval(s.config.MaxPollInterval),
		backoff.WithMaxElapsedTime(0),
	)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		found, err := sh.look(ctx)
		if err != nil && ctx.Err() == nil {
			s.logger.Error("Cannot read the tail of the journal, will try again", err, watermill.LogFields{"shard": sh.number})
		}
		if found {
			pause.Reset()
		}
		timer.Reset(pause.NextBackOff())
	}
}

// look reads on to the end of the tail, and takes the second look where one is due.
func (sh *shard) look(ctx context.Context) (found bool, err error) {
	s := sh.session
	for {
		if err := s.budget.wait(ctx); err != nil {
			return found, err
		}
		before := s.now()
		horizon := before.Add(-s.config.TrailingDelay)
		page, err := sh.tail(ctx, journal.TailQuery{
			AggregateType: s.topic, Shard: sh.number, After: sh.live,
			// A time far ahead must not drag the cursor past all that is to come.
			Until: before.Add(s.config.TrailingDelay),
		})
		if err != nil {
			return found, err
		}
		sh.report(page.Corrupt)
		found = found || len(page.Records) > 0
		final := sh.trail == sh.live
		sh.live = page.Next
		if final {
			// What is older than the horizon needs no second look.
			for _, r := range page.Records {
				if !r.OccurredAt.Before(horizon) {
					break
				}
				sh.trail = journal.CursorAfter(r)
			}
		}
		// The events of one commit have one time, and the index gives them in any order.
		slices.SortFunc(page.Records, func(a, b *journal.Record) int { return cmp.Compare(a.Number, b.Number) })
		sh.offer(page.Records, !page.More)
		if !page.More {
			return found, sh.lookAgain(ctx, horizon)
		}
	}
}

// lookAgain takes the second look: at what the first has passed and is older than
// the horizon.
func (sh *shard) lookAgain(ctx context.Context, horizon time.Time) error {
	s := sh.session
	if sh.trail == sh.live || time.Now().Before(sh.nextTrail) {
		return nil
	}
	until := min(horizon.UnixMilli(), sh.live.OccurredAt)
	for until >= sh.trail.OccurredAt {
		page, err := sh.tail(ctx, journal.TailQuery{
			AggregateType: s.topic, Shard: sh.number, After: sh.trail, Until: time.UnixMilli(until), NumbersOnly: true,
		})
		if err != nil {
			return err
		}
		switch {
		case page.More:
			sh.trail = page.Next
		case until == sh.live.OccurredAt:
			sh.trail = sh.live
		default:
			sh.trail = journal.Cursor{OccurredAt: until + 1}
		}
		sh.hear(page.Records)
		if !page.More {
			break
		}
	}
	sh.nextTrail = time.Now().Add(s.config.TrailingDelay / 2)
	return nil
}

// tail bounds one read, so that a dead connection does not stall the shard.
func (sh *shard) tail(ctx context.Context, q journal.TailQuery) (journal.TailPage, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return sh.session.raw.Tail(ctx, q)
}

const readTimeout = 30 * time.Second

// report logs items of the tail that are no records. Where an item still tells its place, its aggregate
// hears of it and stops there until it is mended; else the gap stops it.
func (sh *shard) report(corrupt []*journal.CorruptItemError) {
	for _, err := range corrupt {
		sh.session.stats.corrupt.Add(1)
		sh.session.logger.Error("An item of the journal is not an event that can be read", err, watermill.LogFields{"shard": sh.number})
		if err.Number > 0 {
			// Its time may be what is corrupt. That of what is settled so far is early enough.
			sh.hear([]*journal.Record{{
				Aggregate: err.Aggregate, Number: err.Number, OccurredAt: time.UnixMilli(sh.trail.OccurredAt),
			}})
		}
	}
}

// offer passes on what the first look read.
func (sh *shard) offer(records []*journal.Record, caughtUp bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	room := sh.session.streamBytes()
	for _, r := range records {
		st := sh.stream(r.Aggregate)
		if st.claimed && r.Number <= st.acked {
			sh.session.stats.duplicates.Add(1)
		}
		st.offer(r, (len(st.buffer) == 0 || st.bufferBytes+r.Size() <= room) && st.state != delayed)
		sh.schedule(st)
	}
	sh.settled = sh.trail.OccurredAt
	sh.caughtUp = caughtUp
	sh.forget()
}

// hear passes on what the second look found: numbers alone.
func (sh *shard) hear(records []*journal.Record) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, r := range records {
		st := sh.stream(r.Aggregate)
		if st.claimed && r.Number <= st.acked {
			sh.session.stats.duplicates.Add(1)
		}
		st.offer(r, false)
		sh.schedule(st)
	}
	sh.settled = sh.trail.OccurredAt
}

// wake is told of a commit in this process. While the tail is still being read from far
// behind, the event's turn comes by itself, and cheaper.
func (sh *shard) wake(id aggregate.ID, version uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !sh.caughtUp {
		return
	}
	st := sh.stream(id)
	st.hear(version)
	sh.schedule(st)
}

// stream finds or makes a stream. The caller holds mu, as in all that follows.
func (sh *shard) stream(id aggregate.ID) *stream {
	st := sh.streams[id.Value]
	if st == nil {
		st = &stream{id: id, shard: sh}
		sh.streams[id.Value] = st
	}
	return st
}

// schedule brings a stream with something to do into the lanes.
func (sh *shard) schedule(st *stream) {
	if st.drained() {
		return
	}
	sh.unfinished[st] = struct{}{}
	if st.pending.IsZero() {
		st.pending = time.Now()
	}
	if st.state == idle {
		st.state = active
		sh.session.lanes.run(st)
	}
}

// settle notes that a stream has nothing left to do for now.
func (sh *shard) settle(st *stream) {
	st.state = idle
	st.drop()
	if !st.listed {
		delete(sh.unfinished, st)
	}
	st.pending = time.Time{}
}

// forget drops streams that have nothing to do, once there are many.
func (sh *shard) forget() {
	for value, st := range sh.streams {
		if len(sh.streams) <= sh.session.config.idleStreams {
			return
		}
		_, dirty := sh.dirty[st]
		_, unfinished := sh.unfinished[st]
		if st.state == idle && !dirty && !unfinished {
			delete(sh.streams, value)
			sh.forgetful = true
		}
	}
}
