package subscriber

import (
	"context"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// revision is that of the next write to an entry of the list. A write that is given up and arrives
// late is older than what was written since.
func (c *committer) revision() checkpoint.Revision {
	return checkpoint.Revision{Epoch: c.epoch, Number: c.revisions.Add(1)}
}

// list puts a stream on the list of those behind.
func (c *committer) list(ctx context.Context, st *stream) error {
	st.listing.Lock()
	defer st.listing.Unlock()
	entry, needed := c.sequencer.beginListing(st)
	if !needed {
		return nil
	}
	if err := c.checkpoint.ListBehind(ctx, c.key.Group, c.revision(), entry); err != nil {
		return err
	}
	c.sequencer.setListed(st, true)
	return nil
}

// unlist deletes the entry. The stream counts as not listed from before the write, because its
// outcome may be unknown.
func (c *committer) unlist(ctx context.Context, st *stream) error {
	st.listing.Lock()
	defer st.listing.Unlock()
	if !c.sequencer.beginUnlisting(st) {
		return nil // it has something to do again
	}
	if err := c.checkpoint.UnlistBehind(ctx, c.key.Group, st.id, c.revision()); err != nil {
		return err
	}
	c.sequencer.setListed(st, false)
	return nil
}

// park lists a stream as parked, and lets it rest.
func (c *committer) park(ctx context.Context, st *stream, why *checkpoint.Failure) error {
	st.listing.Lock()
	defer st.listing.Unlock()
	head := c.sequencer.expectEntry(st)
	b := checkpoint.Behind{Aggregate: st.id, Head: head, Parked: why}
	if err := c.checkpoint.ListBehind(ctx, c.key.Group, c.revision(), b); err != nil {
		return err
	}
	c.sequencer.park(st)
	return nil
}
