package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
	"github.com/millrace-dev/millrace/test/draw"
)

// exporter exports the journal, or one topic of it, during the storm. Exports fail because of the
// faults of the world, because the disk is full, or because they are stopped. They then continue
// the archive.
type exporter struct {
	world   *world
	journal *journal.Journal
	random  *rand.Rand
}

// exported is an archive, and the events that it must contain.
type exported struct {
	only archive.Selection
	text []byte
	// The events that were acknowledged before the export began.
	due map[stream]uint64
}

func (w *world) newExporter(ctx context.Context, random *rand.Rand) (*exporter, error) {
	client := w.wire(&member{name: exporterName}, draw.Derive(random)).client(w.db)
	j, err := w.open(ctx, client, &clock{})
	if err != nil {
		return nil, err
	}
	return &exporter{world: w, journal: j, random: random}, nil
}

const exporterName = "exporter"

// run makes some exports during the storm.
func (x *exporter) run(ctx context.Context, exports int) {
	every := x.world.plan.duration / time.Duration(exports)
	for range exports {
		pauseFor(ctx, draw.UpTo(x.random, 2*every))
		x.export(ctx)
	}
}

// export makes an archive, with as many attempts as necessary, unless ctx ends.
func (x *exporter) export(ctx context.Context) {
	w := x.world
	var only archive.Selection
	if x.random.IntN(3) == 0 {
		only.AggregateType = draw.Pick(x.random, w.plan.topics...)
	}
	w.oracle.note("export", exporterName)
	made := exported{only: only, due: w.oracle.acknowledgedBy(w.trace.now() - w.plan.listLag())}
	file, from := &bytes.Buffer{}, archive.Position{}
	for breaks := x.random.IntN(4); ; breaks-- {
		complete := x.attempt(ctx, file, archive.ExportOptions{Only: only, From: from, Concurrency: draw.Pick(x.random, 0, 1, 3)}, breaks > 0)
		if complete && breaks <= 0 {
			break
		}
		if ctx.Err() != nil {
			return
		}
		pauseFor(ctx, draw.UpTo(x.random, 2*time.Second))
		// The last written data may not be on the disk.
		file.Truncate(file.Len() - x.random.IntN(1+min(file.Len(), 1000)))
		var err error
		if from, err = archive.ResumePosition(bytes.NewReader(file.Bytes())); err != nil {
			w.oracle.find(Archived, "an export cannot go on: %v", err)
			return
		}
		file.Truncate(int(from.Offset))
	}
	w.oracle.note("exported", exporterName)
	made.text = file.Bytes()
	w.exported = append(w.exported, made)
}

// listLag is how long an aggregate may be missing in the list of all aggregates.
func (p *plan) listLag() time.Duration {
	if p.layout == journal.Packed {
		return p.indexLag // the list is an index
	}
	return 0
}

// attempt continues an archive, and reports whether it is complete. With breaks, it is stopped or
// its disk becomes full after a while.
func (x *exporter) attempt(ctx context.Context, file *bytes.Buffer, o archive.ExportOptions, breaks bool) (complete bool) {
	w, to := x.world, &disk{file: file, left: math.MaxInt}
	if breaks && x.random.IntN(2) == 0 {
		to.left = x.random.IntN(1 << (10 + x.random.IntN(13)))
	} else if breaks {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, draw.UpTo(x.random, 2*time.Second>>x.random.IntN(7)))
		defer stop()
	}
	if x.random.IntN(2) == 0 {
		o.Unreadable = func(_ aggregate.ID, err error) error { return err }
	}
	_, err := archive.Export(ctx, x.journal, to, o)
	switch {
	case to.left < 0 && err == nil: // a read that failed at the same time may be the error
		w.oracle.find(Archived, "the disk was full, but an export returned no error")
	case errors.As(err, new(*journal.CorruptItemError)):
		w.oracle.find(Archived, "an export finds something corrupt: %v", err)
	case err != nil:
		w.oracle.note("export failed", fmt.Sprint(exporterName, ": ", err))
	}
	return err == nil
}

// disk is a file on a disk that becomes full.
type disk struct {
	file *bytes.Buffer
	left int // bytes; negative once it was full
}

var errDiskFull = errors.New("sim: the disk is full")

func (d *disk) Write(p []byte) (int, error) {
	if len(p) <= d.left {
		d.left -= len(p)
		return d.file.Write(p)
	}
	n, _ := d.file.Write(p[:max(d.left, 0)])
	d.left = -1
	return n, errDiskFull
}

// acknowledgement is the knowledge of writers about an aggregate.
type acknowledgement struct {
	since time.Duration // of its first event
	// Of its events, starting with the first. Empty for events with an unknown outcome.
	ids []string
}

// acknowledge records the ids of the events of a commit. Version is the number of the last of them.
// The caller holds mu.
func (o *oracle) acknowledge(s stream, version uint64, ids []string) {
	a := o.acknowledged[s]
	if a == nil {
		a = &acknowledgement{since: o.trace.now()}
		o.acknowledged[s] = a
	}
	if more := int(version) - len(a.ids); more > 0 { //nolint:gosec // a world has few
		a.ids = append(a.ids, make([]string, more)...)
	}
	copy(a.ids[int(version)-len(ids):], ids) //nolint:gosec // as above
}

// acknowledgedBy returns the last acknowledged event of each aggregate that is known since a time.
func (o *oracle) acknowledgedBy(since time.Duration) map[stream]uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := map[stream]uint64{}
	for s, a := range o.acknowledged {
		if a.since <= since {
			last[s] = uint64(len(a.ids))
		}
	}
	return last
}

// payload returns the payload of an event. If there are no exports, all events have the same
// payload.
func (p *plan) payload(id string) []byte {
	if p.disruption.has(Exports) {
		return fmt.Appendf(nil, `{"id":%q}`, id)
	}
	return []byte(`{}`)
}
