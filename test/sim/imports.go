package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/draw"
)

// importer writes histories that are older than the cursors of all groups, while these run. Only
// reconciliation finds them.
type importer struct {
	world   *world
	journal *journal.Journal
	random  *rand.Rand
	heads   map[aggregate.ID]journal.Head
	at      map[aggregate.ID]time.Time // the date of the last event
}

const importPrefix = "i"

// isImported reports whether an aggregate belongs to the importer. Other writers must not write to
// it, or its import could not continue.
func isImported(id string) bool { return strings.HasPrefix(id, importPrefix) }

func (w *world) newImporter(ctx context.Context, random *rand.Rand) (*importer, error) {
	client := w.wire(&member{name: "importer"}, draw.Derive(random)).client(w.db)
	j, err := w.open(ctx, client, &clock{})
	if err != nil {
		return nil, err
	}
	return &importer{world: w, journal: j, random: random, heads: map[aggregate.ID]journal.Head{}, at: map[aggregate.ID]time.Time{}}, nil
}

// run imports some pages during the storm, until ctx ends.
func (i *importer) run(ctx context.Context, pages int) {
	every := i.world.plan.duration / time.Duration(pages)
	for range pages {
		pauseFor(ctx, draw.UpTo(i.random, 2*every))
		id := aggregate.ID{Type: draw.Pick(i.random, i.world.plan.topics...), Value: fmt.Sprint(importPrefix, i.random.IntN(4))}
		for ctx.Err() == nil && !i.restore(ctx, id) { // as a failed import is repeated
			pauseFor(ctx, time.Second)
		}
	}
}

// restore writes the next page of an aggregate's history. It reports whether it succeeded.
func (i *importer) restore(ctx context.Context, id aggregate.ID) bool {
	r := draw.New(i.world.Seed, i.heads[id].Version) // the same when it is repeated
	head := i.heads[id]
	restoration := storage.Restoration{Expected: head.Version, Head: journal.Head{Aggregate: id}}
	at, commit := i.at[id], ""
	if at.IsZero() {
		at = time.Now().Add(-between(i.random, 24*time.Hour, 40*24*time.Hour))
		i.at[id] = at
	}
	for range 1 + r.IntN(40) {
		number := head.Version + 1
		// Events of one commit have the same date.
		if commit == "" || r.IntN(3) == 0 {
			at, commit = at.Add(draw.UpTo(r, 10*time.Minute)), fmt.Sprint("import-", id.Type, id.Value, "-", number)
		}
		head = journal.Head{Aggregate: id, Version: number}
		restoration.Records = append(restoration.Records, &journal.Record{
			Aggregate: id, Number: number, EventID: fmt.Sprint("import-", id.Type, id.Value, "-", number), EventType: eventType(number),
			OccurredAt: at, CommitID: commit,
		})
	}
	ids := make([]string, 0, len(restoration.Records))
	for _, record := range restoration.Records {
		record.Payload = i.world.plan.payload(record.EventID)
		ids = append(ids, record.EventID)
	}
	restoration.Head.Version = head.Version
	if _, err := i.journal.Internal().Restore(ctx, restoration); err != nil {
		i.world.oracle.note("failed", "importer")
		return false
	}
	i.heads[id], i.at[id] = head, at
	i.world.oracle.committed("importer", streamOf(id), head.Version, ids)
	i.world.oracle.count("import", 1)
	return true
}
