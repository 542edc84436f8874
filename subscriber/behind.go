package subscriber

import (
	"context"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// revision is that of the next write to an entry of the list. A write that is given up and arrives
// late is older than what was written since.
func (sh *shard) revision() checkpoint.Revision {
	return checkpoint.Revision{Epoch: sh.epoch, Number: sh.revisions.Add(1)}
}

// list puts a stream on the list of those behind.
func (sh *shard) list(ctx context.Context, st *stream) error {
	st.listing.Lock()
	defer st.listing.Unlock()
	head, listed := sh.expectEntry(st)
	if listed {
		return nil // it was parked meanwhile
	}
	if err := sh.checkpoint.ListBehind(ctx, sh.key.Group, sh.revision(), checkpoint.Behind{Aggregate: st.id, Head: head}); err != nil {
		return err
	}
	sh.setListed(st, true)
	return nil
}

// unlist takes it off. From before the write on it does not count as listed, as nobody may know
// whether it was made.
func (sh *shard) unlist(ctx context.Context, st *stream) error {
	st.listing.Lock()
	defer st.listing.Unlock()
	if !sh.beginUnlisting(st) {
		return nil // it has something to do again
	}
	if err := sh.checkpoint.UnlistBehind(ctx, sh.key.Group, st.id, sh.revision()); err != nil {
		return err
	}
	sh.setListed(st, false)
	return nil
}

// expectEntry notes that there may be a row from now on, so that the stream is not forgotten.
func (sh *shard) expectEntry(st *stream) (head uint64, listed bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st.entry = true
	sh.unfinished[st] = struct{}{}
	return st.head, st.listed
}

func (sh *shard) beginUnlisting(st *stream) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !sh.isDone(st) {
		return false
	}
	st.listed = false
	return true
}

// isDone reports that a stream is drained and its position stored. The caller holds mu.
func (sh *shard) isDone(st *stream) bool {
	_, dirty := sh.dirty[st]
	return st.drained() && !dirty && st.state != parked
}

// park lists a stream as parked, and lets it rest.
func (sh *shard) park(st *stream, why *checkpoint.Parked) error {
	st.listing.Lock()
	defer st.listing.Unlock()
	ctx, cancel := context.WithTimeout(sh.messageCtx, writeTimeout)
	defer cancel()
	sh.expectEntry(st)
	b := checkpoint.Behind{Aggregate: st.id, Head: sh.headOf(st), Parked: why}
	if err := sh.checkpoint.ListBehind(ctx, sh.key.Group, sh.revision(), b); err != nil {
		return err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st.state, st.listed = parked, true
	st.drop()
	return nil
}

func (sh *shard) headOf(st *stream) uint64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return st.head
}

func (sh *shard) setListed(st *stream, listed bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	st.listed, st.entry = listed, listed
	if !listed && st.drained() {
		delete(sh.unfinished, st)
	}
}
