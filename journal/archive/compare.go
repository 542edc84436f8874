package archive

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/journal"
)

// Compare reads an archive and compares each of its events with the journal. It shows that an
// import is complete and right, or that nothing has changed since an export. The report lists all
// faults. An aggregate that the export left out is a fault. Events that only the journal has, and
// events that it has truncated or deleted since, are not faults. See [Verify] for faults that an
// archive cannot show.
//
// It costs one read of each head, and a read of the events: half a read unit for each 4 KB in the
// layout journal.Classic, and one unit in journal.Packed.
//
// Errors: [ErrInvalidOptions], [ErrNotArchive], [ErrTorn], [ErrDamaged], the errors of r, and these
// of package journal: ErrThrottled, ErrTableMissing, ErrAccess; and the error of ctx. With an
// error, the report has the faults that were found until then.
func Compare(ctx context.Context, j *journal.Journal, r io.Reader, o VerifyOptions) (Report, error) {
	shared := options{o.Only, o.Concurrency}
	if err := shared.check(j); err != nil {
		return Report{}, fmt.Errorf("compare: %w", err)
	}
	c := &comparison{journal: j.Internal().Raw(), found: collector{progress: o.Progress}}
	err := shared.eachAggregate(ctx, newReaderFor(j, r), c.aggregate)
	if err != nil {
		err = fmt.Errorf("compare: %w", err)
	}
	return c.found.sorted(), err
}

type comparison struct {
	journal *engine.Engine
	found   collector
}

func (c *comparison) aggregate(ctx context.Context, pages <-chan page) error {
	var here journal.Head
	for p := range pages {
		if p.leftOut != "" {
			c.found.fault(p.fault())
			c.found.count(p.progress())
			continue
		}
		if p.first {
			var err error
			if here, err = c.head(ctx, p.head); err != nil {
				return err
			}
		}
		present := p.records
		for n := len(present); n > 0 && present[n-1].Number > here.Version; n-- {
			present = present[:n-1]
		}
		for len(present) > 0 && present[0].Number < here.TruncatedBefore {
			present = present[1:]
		}
		if err := c.events(ctx, present); err != nil {
			return err
		}
		c.found.count(p.progress())
	}
	return nil
}

// head returns the head of the journal. Its version is 0 if there is nothing to compare.
func (c *comparison) head(ctx context.Context, archived journal.Head) (journal.Head, error) {
	id := archived.Aggregate
	here, err := c.journal.Head(ctx, id)
	switch {
	case errors.As(err, new(*journal.CorruptItemError)):
		c.found.fault(Fault{Kind: Unreadable, Aggregate: id, Err: err})
		return journal.Head{}, nil
	case err != nil && !errors.Is(err, journal.ErrNotFound):
		return journal.Head{}, err
	}
	if here.Version < archived.Version {
		c.found.fault(Fault{Kind: Missing, Aggregate: id, From: here.Version + 1, To: archived.Version})
	} else if !archived.DeletedAt.IsZero() && here.DeletedAt.IsZero() {
		c.found.fault(Fault{Kind: Different, Aggregate: id, Err: errors.New("it is deleted in the archive but not in the journal")})
	}
	return here, nil
}

// events compares a run of events. If some of them cannot be decoded, it compares them one by one.
func (c *comparison) events(ctx context.Context, archived []*journal.Record) error {
	if len(archived) == 0 {
		return nil
	}
	id, from, to := archived[0].Aggregate, archived[0].Number, archived[len(archived)-1].Number
	for here, err := range c.journal.Events(ctx, id, from, to) {
		switch {
		case errors.As(err, new(*journal.TruncatedError)):
			return nil // removed a moment ago
		case errors.As(err, new(*journal.CorruptItemError)) && len(archived) == 1:
			c.found.fault(Fault{Kind: Unreadable, Aggregate: id, From: to, To: to, Err: err})
			return nil
		case errors.As(err, new(*journal.CorruptItemError)):
			for i := range archived {
				if err := c.events(ctx, archived[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		case err != nil:
			return err
		}
		c.compare(id, here, archived[0])
		archived = archived[1:]
	}
	return nil
}

func (c *comparison) compare(id aggregate.ID, here, archived *journal.Record) {
	if what := difference(here, archived); what != "" {
		c.found.fault(Fault{
			Kind: Different, Aggregate: id, From: archived.Number, To: archived.Number, Err: errors.New("it has another " + what),
		})
	}
}

// difference names the first field in which two events differ.
func difference(a, b *journal.Record) string {
	switch {
	case a.Equal(b):
		return ""
	case a.EventID != b.EventID:
		return "event id"
	case a.EventType != b.EventType:
		return "event type"
	case a.CommitID != b.CommitID:
		return "commit id"
	case !a.OccurredAt.Equal(b.OccurredAt):
		return "time"
	case a.Encoding != b.Encoding:
		return "encoding"
	case string(a.Payload) != string(b.Payload):
		return "payload"
	default:
		return "metadata"
	}
}
