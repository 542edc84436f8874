package subscriber

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
)

// flushing writes positions and cursors until ctx ends. A flush under way is not cut off.
func (sh *shard) flushing(ctx context.Context) {
	ticker := time.NewTicker(sh.config.CommitInterval)
	defer ticker.Stop()
	cursors := time.Now().Add(sh.config.cursorInterval)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		sh.verifyParked(ctx)
		due := time.Now().After(cursors)
		sh.flush(context.WithoutCancel(ctx), due)
		if due {
			cursors = time.Now().Add(sh.config.cursorInterval)
		}
	}
}

// flush writes the positions that moved, and then the cursor: it may only
// pass what is stored. What cannot be written stays dirty and is written with the next flush.
func (sh *shard) flush(ctx context.Context, cursor bool) {
	var hangs atomic.Bool // then the rest would only hang as well, and Close with it
	var rows []func() error
	for _, st := range sh.dirtyStreams() {
		rows = append(rows, func() error {
			switch {
			case sh.isLost():
				return ErrFenced
			case hangs.Load():
				return nil
			}
			once, cancel := context.WithTimeout(ctx, writeTimeout)
			defer cancel()
			err := sh.flushPosition(once, st)
			if once.Err() != nil {
				hangs.Store(true)
			}
			return err
		})
	}
	sh.failedToWrite(sh.inParallel(rows))
	if cursor && !sh.isLost() && !hangs.Load() {
		once, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		sh.failedToWrite([]error{sh.saveCursor(once)})
	}
}

// failedToWrite logs the first error for all, which mostly have one cause.
func (sh *shard) failedToWrite(errs []error) {
	sh.failed("Cannot write a checkpoint, will try again", errs)
}

func (sh *shard) failed(what string, errs []error) {
	var first error
	rows := 0
	for _, err := range errs {
		switch {
		case err == nil:
		case sh.fenced(err):
			return
		default:
			if rows++; rows == 1 {
				first = err
			}
		}
	}
	if first != nil {
		sh.logger.Error(what, first, watermill.LogFields{"shard": sh.number, "rows": rows})
	}
}

// flushPosition writes a stream's position, unless a handler's own transaction did.
func (sh *shard) flushPosition(ctx context.Context, st *stream) error {
	if !st.position.mu.TryLock() {
		return nil // a handler is committing it, for as long as that may take; the stream stays dirty
	}
	defer st.position.mu.Unlock()
	if err := sh.settlePosition(ctx, st); err != nil {
		return err
	}
	stored, acked := st.position.stored.Load(), sh.ackedOf(st)
	if acked > stored {
		if err := sh.config.Positions.Advance(ctx, sh.group(), st.id, sh.epoch, stored, acked); err != nil {
			st.position.doubt = true
			return err
		}
		st.position.stored.Store(acked)
		sh.stats.positions.Add(1)
	}
	sh.clean(st, acked)
	return nil
}

// saveCursor moves the shard's cursor as far as it can go: up to where the last trailing read is,
// and not past an event that is not acked and stored, unless its aggregate is listed as behind.
func (sh *shard) saveCursor(ctx context.Context) error {
	cursor, swept, list, unlist := sh.progress()
	var rows []func() error
	for _, st := range list {
		rows = append(rows, func() error { return sh.list(ctx, st) })
	}
	for _, st := range unlist {
		rows = append(rows, func() error { return sh.unlist(ctx, st) })
	}
	for _, err := range sh.inParallel(rows) {
		if err != nil {
			return err
		}
	}
	return sh.writeCursor(ctx, cursor, swept)
}

// settlePosition finds out what has become of a write that failed. The caller holds the position's
// mutex.
func (sh *shard) settlePosition(ctx context.Context, st *stream) error {
	if !st.position.doubt {
		return nil
	}
	position, _, err := sh.config.Positions.Claim(ctx, sh.group(), st.id, sh.epoch)
	if err != nil {
		return err
	}
	st.position.doubt = false
	st.position.stored.Store(position)
	return nil
}

func (sh *shard) writeCursor(ctx context.Context, cursor int64, swept time.Time) error {
	saved, savedSwept := sh.savedCursor()
	if cursor = max(cursor, saved); cursor == saved && swept.Equal(savedSwept) {
		return nil
	}
	if err := sh.checkpoint.SaveCursor(ctx, sh.key, sh.epoch, time.UnixMilli(cursor), swept); err != nil {
		return err
	}
	sh.setSavedCursor(cursor, swept)
	return nil
}

// progress reports where the cursor can be once the streams in list are listed as
// behind, and which streams need no longer be.
func (sh *shard) progress() (cursor int64, swept time.Time, list, unlist []*stream) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	cursor, swept = sh.settled, sh.swept
	hold := func(st *stream) { cursor = min(cursor, st.hintAt) }
	for st := range sh.dirty {
		if st.hint > 0 && !st.listed {
			hold(st) // acked since, and not stored yet
		}
	}
	for st := range sh.unfinished {
		switch {
		case st.entry && sh.isDone(st):
			unlist = append(unlist, st)
		case !st.listed && !st.drained() && max(st.swept, st.led) > st.acked:
			list = append(list, st) // no cursor leads back to it
		case st.drained(), st.listed, st.hint == 0, st.claimed && st.hint <= st.acked, st.hintAt >= sh.settled:
			// Nothing of it lies before the cursor that a restart would not find.
		case time.Since(st.pending) > sh.config.BehindAfter:
			list = append(list, st)
		default:
			hold(st)
		}
	}
	return cursor, swept, list, unlist
}

// awaitStored waits while too many positions are not stored yet, as in an outage of the store: what
// is acked meanwhile would pile up in memory, be stored late, and come again after a crash. It
// returns false when the shard stops.
func (sh *shard) awaitStored() bool {
	for {
		sh.mu.Lock()
		room := len(sh.dirty) < sh.config.maxUnstored
		if !room && sh.stored == nil {
			sh.stored = make(chan struct{})
		}
		stored := sh.stored
		sh.mu.Unlock()
		if room {
			return !sh.isStopping()
		}
		select {
		case <-stored:
		case <-sh.stopping:
			return false
		}
	}
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
	if sh.stored != nil && len(sh.dirty) < sh.config.maxUnstored {
		close(sh.stored)
		sh.stored = nil
	}
}

func (sh *shard) ackedOf(st *stream) uint64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return st.acked
}

func (sh *shard) savedCursor() (cursor int64, swept time.Time) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.saved, sh.savedSwept
}

func (sh *shard) setSavedCursor(cursor int64, swept time.Time) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.saved, sh.savedSwept = cursor, swept
}
