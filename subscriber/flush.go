package subscriber

import (
	"context"
	"sync"
	"time"
)

const (
	// flushWriters is how many rows are written side by side.
	flushWriters = 16
)

// flushing writes positions and cursors until ctx ends. A flush under way is not cut off.
func (s *session) flushing(ctx, writing context.Context) {
	ticker := time.NewTicker(s.config.CommitInterval)
	defer ticker.Stop()
	cursors := time.Now().Add(s.config.cursorInterval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		due := time.Now().After(cursors)
		s.flush(writing, due)
		if due {
			cursors = time.Now().Add(s.config.cursorInterval)
		}
	}
}

// flush writes the positions that moved, and then the cursors: a cursor may only
// pass what is stored.
func (s *session) flush(ctx context.Context, cursors bool) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var rows []func() error
	for _, sh := range s.shards {
		for _, st := range sh.dirtyStreams() {
			rows = append(rows, func() error { return s.flushPosition(ctx, st) })
		}
	}
	s.inParallel(rows)
	if !cursors || s.isFenced() {
		return
	}
	rows = rows[:0]
	for _, sh := range s.shards {
		rows = append(rows, func() error { return sh.saveCursor(ctx) })
	}
	s.inParallel(rows)
}

// flushPosition writes a stream's position, unless a handler's own transaction did.
func (s *session) flushPosition(ctx context.Context, st *stream) error {
	if !st.position.mu.TryLock() {
		return nil // a handler is committing it, for as long as that may take; the stream stays dirty
	}
	defer st.position.mu.Unlock()
	stored, acked := st.position.stored.Load(), st.shard.ackedOf(st)
	if acked > stored {
		err := s.config.Positions.Advance(ctx, s.config.ConsumerGroup, st.id, s.lease.Epoch, stored, acked)
		if err != nil {
			return err
		}
		st.position.stored.Store(acked)
		s.stats.positions.Add(1)
	}
	st.shard.clean(st, acked)
	return nil
}

// saveCursor moves the shard's cursor as far as it can go: up to the end of the second look, and
// not past an event that is not acked and stored, unless its aggregate is listed as behind.
func (sh *shard) saveCursor(ctx context.Context) error {
	s := sh.session
	cursor, list, unlist := sh.progress()
	for _, b := range list {
		if err := s.checkpoint.ListBehind(ctx, s.config.ConsumerGroup, b.stream.id, s.lease.Epoch, b.head); err != nil {
			return err
		}
		sh.setListed(b.stream, true)
	}
	for _, st := range unlist {
		if err := s.checkpoint.UnlistBehind(ctx, s.config.ConsumerGroup, st.id, s.lease.Epoch); err != nil {
			return err
		}
		sh.setListed(st, false)
	}
	if cursor <= sh.savedCursor() {
		return nil
	}
	if err := s.checkpoint.SaveCursor(ctx, sh.key, s.lease.Epoch, time.UnixMilli(cursor)); err != nil {
		return err
	}
	sh.setSavedCursor(cursor)
	return nil
}

type behind struct {
	stream *stream
	head   uint64
}

// progress tells where the cursor can be once the streams in list are listed as
// behind, and which streams need no longer be.
func (sh *shard) progress() (cursor int64, list []behind, unlist []*stream) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	cursor = sh.settled
	hold := func(st *stream) { cursor = min(cursor, st.hintAt) }
	for st := range sh.dirty {
		if st.hint > 0 && !st.listed {
			hold(st) // acked since, and not stored yet
		}
	}
	for st := range sh.unfinished {
		_, dirty := sh.dirty[st]
		switch {
		case st.drained() && st.listed && !dirty:
			unlist = append(unlist, st)
		case st.drained(), st.listed, st.hint == 0, st.claimed && st.hint <= st.acked, st.hintAt >= sh.settled:
			// Nothing of it lies before the cursor that a restart would not find.
		case time.Since(st.pending) > sh.session.config.BehindAfter:
			list = append(list, behind{st, st.head})
		default:
			hold(st)
		}
	}
	return cursor, list, unlist
}

func (sh *shard) dirtyStreams() []*stream {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	streams := make([]*stream, 0, len(sh.dirty))
	for st := range sh.dirty {
		streams = append(streams, st)
	}
	return streams
}

// clean notes that a position is stored. Until then the stream is dirty, so that it is not
// forgotten in the middle of a write.
func (sh *shard) clean(st *stream, stored uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if st.acked == stored {
		delete(sh.dirty, st)
	}
}

func (sh *shard) ackedOf(st *stream) uint64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return st.acked
}

func (sh *shard) setListed(st *stream, listed bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st.listed = listed
	if listed {
		sh.unfinished[st] = struct{}{} // also if it was finished meanwhile, so that it is taken off again
	} else if st.drained() {
		delete(sh.unfinished, st)
	}
}

func (sh *shard) savedCursor() int64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.saved
}

func (sh *shard) setSavedCursor(cursor int64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.saved = cursor
}

// inParallel writes rows side by side. Errors are logged: what was not written stays
// dirty and is written with the next flush.
func (s *session) inParallel(rows []func() error) {
	var writers sync.WaitGroup
	free := make(chan struct{}, flushWriters)
	for _, write := range rows {
		if s.isFenced() {
			break
		}
		free <- struct{}{}
		writers.Add(1)
		go func() {
			defer writers.Done()
			if err := write(); err != nil && !s.lost(err) {
				s.logger.Error("Cannot write a checkpoint, will try again", err, nil)
			}
			<-free
		}()
	}
	writers.Wait()
}
