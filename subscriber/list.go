package subscriber

import (
	"context"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// revision returns the revision of the next write to an entry of the behind list. A write that is
// given up and arrives late has an older revision than later writes, so it changes nothing.
func (c *committer) revision() checkpoint.Revision {
	return checkpoint.Revision{Epoch: c.epoch, Number: c.revisions.Add(1)}
}

// list adds a stream to the behind list.
func (c *committer) list(ctx context.Context, st *stream) error {
	st.Work.listing.Lock()
	defer st.Work.listing.Unlock()
	entry, needed := c.sequencer.BeginListing(st)
	if !needed {
		return nil
	}
	if err := c.checkpoint.ListBehind(ctx, c.key.Group, c.revision(), entry); err != nil {
		return err
	}
	c.sequencer.Explain(st, entry.Failure)
	c.sequencer.SetListed(st, true)
	return nil
}

// unlist deletes the entry of a stream. The stream counts as not listed from before the write,
// because the outcome of the write may be unknown.
func (c *committer) unlist(ctx context.Context, st *stream) error {
	st.Work.listing.Lock()
	defer st.Work.listing.Unlock()
	if !c.sequencer.BeginUnlisting(st) {
		return nil // it has new events
	}
	if err := c.checkpoint.UnlistBehind(ctx, c.key.Group, st.ID, c.revision()); err != nil {
		return err
	}
	c.sequencer.Explain(st, nil)
	c.sequencer.SetListed(st, false)
	return nil
}

// park adds a stream to the behind list as parked, and stops its delivery.
func (c *committer) park(ctx context.Context, st *stream, why *checkpoint.Failure) error {
	st.Work.listing.Lock()
	defer st.Work.listing.Unlock()
	head := c.sequencer.ExpectEntry(st)
	b := checkpoint.Behind{Aggregate: st.ID, Head: head, Parked: why}
	if err := c.checkpoint.ListBehind(ctx, c.key.Group, c.revision(), b); err != nil {
		return err
	}
	c.sequencer.Park(st)
	return nil
}
