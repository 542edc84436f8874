package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
)

// archiveLine is a line of an archive. It has only the fields that the checks need.
type archiveLine struct {
	Kind string

	Aggregate       struct{ Type, Value string }
	Version         uint64
	TruncatedBefore uint64 `json:"truncated_before"`
	DeletedAt       *int64 `json:"deleted_at"`
	Snapshot        *struct {
		Number  uint64
		Payload []byte
	}

	Number     uint64
	ID, Type   string
	OccurredAt int64 `json:"occurred_at"`
	Commit     string
	Metadata   map[string]string
	Payload    []byte

	Reason string
}

// chapter is the part of an archive about one aggregate.
type chapter struct {
	head   archiveLine
	events []archiveLine
}

// inspectArchives compares the archives with the events that were acknowledged before they were
// made, with the journal at the end, and with the removals.
func (w *world) inspectArchives(ctx context.Context) error {
	histories := map[stream][]*journal.Record{}
	for _, made := range w.exported {
		chapters, err := w.read(made)
		if err != nil {
			w.oracle.find(Archived, "an archive cannot be read: %v", err)
			continue
		}
		for _, s := range sorted(made.due) {
			if made.only.AggregateType != "" && made.only.AggregateType != s.topic {
				continue
			}
			if c, due := chapters[s], made.due[s]; c.head.Version < due {
				w.oracle.find(Archived, "an archive has %d events of %s, and %d were acknowledged before", c.head.Version, s, due)
			}
		}
		for _, s := range sorted(chapters) {
			if histories[s] == nil {
				if histories[s], err = w.history(ctx, aggregate.ID{Type: s.topic, Value: s.id}); err != nil {
					return err
				}
			}
			w.compare(s, chapters[s], histories[s])
		}
	}
	return nil
}

// read reads an archive. Package archive verifies its digests.
func (w *world) read(made exported) (map[stream]chapter, error) {
	if end, err := archive.ResumePosition(bytes.NewReader(made.text)); err != nil || !end.Complete || int(end.Offset) != len(made.text) {
		return nil, fmt.Errorf("it is complete up to byte %d of %d: %w", end.Offset, len(made.text), err)
	}
	chapters, at := map[stream]chapter{}, stream{}
	for text := range bytes.Lines(made.text) {
		var l archiveLine
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, err
		}
		c := chapters[at]
		switch l.Kind {
		case "head":
			at = stream{topic: l.Aggregate.Type, id: l.Aggregate.Value}
			if _, again := chapters[at]; again {
				return nil, fmt.Errorf("it has %s twice", at)
			}
			c = chapter{head: l}
		case "event":
			c.events = append(c.events, l)
		case "left_out":
			return nil, fmt.Errorf("it leaves out %s: %s", at, l.Reason)
		default:
			continue
		}
		chapters[at] = c
	}
	return chapters, nil
}

// compare compares the events of an aggregate in an archive with the written ones.
func (w *world) compare(s stream, c chapter, history []*journal.Record) {
	o, head := w.oracle, c.head
	find := func(format string, args ...any) {
		o.find(Archived, "an archive of %s "+format, append([]any{s}, args...)...)
	}
	var points []uint64
	o.removal(s, func(r *removed) { points = r.points })
	switch first, last := max(head.TruncatedBefore, 1), head.Version; {
	case last > uint64(len(history)):
		find("has %d events, and %d were written", last, len(history))
		return
	case head.TruncatedBefore > 0 && !slices.Contains(points, head.TruncatedBefore):
		find("is truncated before #%d, which was not requested", head.TruncatedBefore)
		return
	case head.DeletedAt != nil && head.TruncatedBefore != last+1:
		find("is deleted after event %d, and truncated before #%d", last, head.TruncatedBefore)
		return
	case uint64(len(c.events)) != last+1-first:
		find("has %d events from #%d to #%d", len(c.events), first, last)
		return
	case head.Snapshot != nil && !strings.HasPrefix(s.topic, sagaPrefix) && !bytes.Equal(head.Snapshot.Payload, snapshotAt(head.Snapshot.Number).Payload):
		find("has the snapshot %s of event %d", head.Snapshot.Payload, head.Snapshot.Number)
	}
	for i, e := range c.events {
		r := history[max(head.TruncatedBefore, 1)-1+uint64(i)]
		if !e.isOf(r) {
			find("has %+v, and %+v was written", e, *r)
			return
		}
		if id := o.idOf(s, e.Number); id != "" && (e.ID != id || !bytes.Equal(e.Payload, w.plan.payload(id))) {
			find("has %+v, and the event that was acknowledged is %s", e, id)
			return
		}
	}
}

// isOf reports whether a line is exactly the line of an event.
func (l *archiveLine) isOf(r *journal.Record) bool {
	return l.Number == r.Number && l.ID == r.EventID && l.Type == r.EventType && l.OccurredAt == r.OccurredAt.UnixMilli() &&
		l.Commit == r.CommitID && maps.Equal(l.Metadata, r.Metadata) && bytes.Equal(l.Payload, r.Payload)
}

// idOf returns the id of an acknowledged event, or "" if it was not acknowledged.
func (o *oracle) idOf(s stream, number uint64) string {
	if a := o.acknowledged[s]; a != nil && number <= uint64(len(a.ids)) {
		return a.ids[number-1]
	}
	return ""
}
