package subscriber

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/checkpoint"
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
	for _, err := range sh.inParallel(rows) {
		sh.failedToWrite(err)
	}
	if cursor && !sh.isLost() && !hangs.Load() {
		once, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		sh.failedToWrite(sh.saveCursor(once))
	}
}

func (sh *shard) failedToWrite(err error) {
	if err != nil && !sh.fenced(err) {
		sh.logger.Error("Cannot write a checkpoint, will try again", err, watermill.LogFields{"shard": sh.number})
	}
}

// flushPosition writes a stream's position, unless a handler's own transaction did.
func (sh *shard) flushPosition(ctx context.Context, st *stream) error {
	if !st.position.mu.TryLock() {
		return nil // a handler is committing it, for as long as that may take; the stream stays dirty
	}
	defer st.position.mu.Unlock()
	stored, acked := st.position.stored.Load(), sh.ackedOf(st)
	if acked > stored {
		if err := sh.config.Positions.Advance(ctx, sh.key.Group, st.id, sh.epoch, stored, acked); err != nil {
			return err
		}
		st.position.stored.Store(acked)
		sh.stats.positions.Add(1)
	}
	sh.clean(st, acked)
	return nil
}

// saveCursor moves the shard's cursor as far as it can go: up to the end of the second look, and
// not past an event that is not acked and stored, unless its aggregate is listed as behind.
func (sh *shard) saveCursor(ctx context.Context) error {
	cursor, list, unlist := sh.progress()
	var rows []func() error
	for _, b := range list {
		rows = append(rows, func() error {
			entry := checkpoint.Behind{Aggregate: b.stream.id, Head: b.head}
			if err := sh.checkpoint.ListBehind(ctx, sh.key.Group, sh.epoch, entry); err != nil {
				return err
			}
			sh.setListed(b.stream, true)
			return nil
		})
	}
	for _, st := range unlist {
		rows = append(rows, func() error {
			if err := sh.checkpoint.UnlistBehind(ctx, sh.key.Group, st.id, sh.epoch); err != nil {
				return err
			}
			sh.setListed(st, false)
			return nil
		})
	}
	if err := errors.Join(sh.inParallel(rows)...); err != nil {
		return err
	}
	return sh.writeCursor(ctx, cursor)
}

func (sh *shard) writeCursor(ctx context.Context, cursor int64) error {
	saved, savedSwept, swept := sh.savedCursor()
	if cursor = max(cursor, saved); cursor == saved && swept.Equal(savedSwept) {
		return nil
	}
	if err := sh.checkpoint.SaveCursor(ctx, sh.key, sh.epoch, time.UnixMilli(cursor), swept); err != nil {
		return err
	}
	sh.setSavedCursor(cursor, swept)
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
		case !st.listed && !st.drained() && st.swept > st.acked:
			list = append(list, behind{st, st.head}) // no cursor leads back to it
		case st.drained(), st.listed, st.hint == 0, st.claimed && st.hint <= st.acked, st.hintAt >= sh.settled:
			// Nothing of it lies before the cursor that a restart would not find.
		case time.Since(st.pending) > sh.config.BehindAfter:
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

func (sh *shard) headOf(st *stream) uint64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return st.head
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

func (sh *shard) savedCursor() (cursor int64, savedSwept, swept time.Time) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.saved, sh.savedSwept, sh.swept
}

func (sh *shard) setSavedCursor(cursor int64, swept time.Time) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.saved, sh.savedSwept = cursor, swept
}
