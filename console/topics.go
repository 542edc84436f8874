package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// newestOfShard is the number of newest entries of each shard that are read, for the rate of
// written events.
const newestOfShard = 20

// rateWindow is the maximum period over which events are counted. It is shorter if the entries of a
// shard do not reach back so far.
const rateWindow = time.Minute

// topicRow is a topic, which is an aggregate type.
type topicRow struct {
	Topic string `json:"topic"`
	// EventsPerSecond is the rate of written events in the last minute, or in the shorter time that
	// the newest events cover; nil if they were not read.
	EventsPerSecond *float64  `json:"events_per_second"`
	Last            *eventRef `json:"last"` // nil if there is none, or if not read
	Groups          []string  `json:"group_names"`
	Read            bool      `json:"read"`     // false if it was left out, or could not be read
	LeftOut         bool      `json:"left_out"` // the page had reached its limit of read units
	States          bool      `json:"states"`
	written         *writing  // nil if it was not read
}

// topicNames returns the topics that are known without a scan.
func (r *reading) topicNames(all []groups.Status) []string {
	names := map[string]bool{}
	for name := range r.repositories() {
		names[name] = true
	}
	for _, name := range r.config.Topics {
		names[name] = true
	}
	for _, g := range all {
		names[g.Topic] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// findTopics returns the types of all aggregates, or of those up to the limit of read units. It has
// that limit for itself, since groups may have taken all that the page had.
func (r *reading) findTopics(ctx context.Context) (names []string, complete bool, err error) {
	found := map[string]bool{}
	ctx, units := journal.CountUnits(ctx)
	units.LimitRead(r.config.PageUnits)
	for head, err := range r.config.Journal.Heads(ctx, journal.HeadsQuery{Corrupt: func(*journal.CorruptItemError) {}}) {
		if errors.Is(err, journal.ErrUnitLimit) {
			return slices.Sorted(maps.Keys(found)), false, nil
		}
		if err != nil {
			return nil, false, err
		}
		found[head.Aggregate.Type] = true
	}
	return slices.Sorted(maps.Keys(found)), true, nil
}

// topicRow reads the newest events of a topic, and returns them too.
func (r *reading) topicRow(ctx context.Context, name string, all []groups.Status) (topicRow, []*journal.Record, error) {
	row := topicRow{Topic: name, Groups: []string{}, States: r.repositories()[name] != nil}
	for _, g := range all {
		if g.Topic == name {
			row.Groups = append(row.Groups, g.Name)
		}
	}
	records, err := r.newest(r.limited(ctx), name)
	if row.LeftOut = errors.Is(err, journal.ErrUnitLimit); row.LeftOut {
		return row, nil, nil
	}
	if err != nil {
		return row, nil, err
	}
	row.Read = true
	row.written = r.written(records)
	rate := row.written.rate(allShards)
	row.EventsPerSecond = &rate
	if len(records) > 0 {
		last := eventRefOf(records[0])
		row.Last = &last
	}
	return row, records, nil
}

// readsAtOnce is the number of topics or groups that are read in parallel.
const readsAtOnce = 4

// rowPatience limits the read of a topic or a group. Throttled reads are otherwise repeated for
// half a minute.
const rowPatience = 5 * time.Second

// topicRows reads the newest events of topics. If some topics cannot be read, it returns the
// others, and the errors in failed.
func (r *reading) topicRows(ctx context.Context, names []string, all []groups.Status) (rows []topicRow, failed []string, err error) {
	rows, errs := make([]topicRow, len(names)), make([]error, len(names))
	var reads errgroup.Group
	reads.SetLimit(readsAtOnce)
	for i, name := range names {
		reads.Go(func() (err error) {
			reading, cancel := context.WithTimeout(ctx, rowPatience)
			defer cancel()
			if rows[i], _, err = r.topicRow(reading, name, all); err != nil {
				errs[i] = fmt.Errorf("topic %s: %w", name, err)
			}
			return ctx.Err()
		})
	}
	err = reads.Wait()
	failed, allErr := failures(errs)
	return rows, failed, cmp.Or(err, allErr)
}

// newest returns the newest events of a topic, newest first, with stored payloads. It leaves out
// events that cannot be read; the page of their aggregate shows them.
func (r *reading) newest(ctx context.Context, topic string) ([]*journal.Record, error) {
	var records []*journal.Record
	for record, err := range r.config.Journal.Raw().Newest(ctx, topic, newestOfShard) {
		switch {
		case record != nil:
			records = append(records, record)
		case !errors.As(err, new(*journal.CorruptItemError)):
			return nil, err
		}
	}
	return records, nil
}

// written returns the times at which the newest events were written. Its period begins at the
// earliest time from which on the records of all shards are complete.
func (r *reading) written(records []*journal.Record) *writing {
	byShard := map[int][]*journal.Record{}
	for _, record := range records {
		n := r.shard(record.Aggregate)
		byShard[n] = append(byShard[n], record)
	}
	w := &writing{from: r.now.Add(-rateWindow), to: r.now, times: map[int][]time.Time{}}
	for n, newest := range byShard {
		if oldest := newest[len(newest)-1].WrittenAt; r.entries(newest) >= newestOfShard && oldest.After(w.from) {
			w.from = oldest
		}
		for _, record := range newest {
			w.times[n] = append(w.times[n], record.WrittenAt)
		}
	}
	return w
}

// entries returns the number of entries of the tail that hold some events. In the layout Packed a
// commit is one entry.
func (r *reading) entries(records []*journal.Record) int {
	if r.config.Journal.Config().Layout != journal.Packed {
		return len(records)
	}
	type commit struct {
		of aggregate.ID
		at time.Time
		id string
	}
	commits := map[commit]bool{}
	for _, record := range records {
		commits[commit{record.Aggregate, record.WrittenAt, record.CommitID}] = true
	}
	return len(commits)
}

func (r *reading) shard(id aggregate.ID) int {
	return r.config.Journal.Internal().Shard(id)
}

// topicView is the page of a topic.
type topicView struct {
	topicRow
	Rows   []groupRow  `json:"groups"`
	Newest []eventView `json:"newest"`
	Failed []string    `json:"failed"` // errors of parts that could not be read
}

func (v topicView) title() string { return "Topic " + v.Topic }

// newestShown is the number of events on the page of a topic, and at the beginning of a live tail.
// They are the newest events, since at least this number is read from each shard.
const newestShown = newestOfShard

func (r *reading) topic(ctx context.Context) (any, error) {
	name, err := r.need("name")
	if err != nil {
		return nil, err
	}
	if _, err := aggregate.NewID(name, "x"); err != nil {
		return nil, err
	}
	all, failed, err := r.listGroups(ctx)
	if err != nil {
		return nil, err
	}
	row, records, err := r.topicRow(ctx, name, all)
	if err != nil {
		return nil, err
	}
	v := topicView{topicRow: row, Rows: []groupRow{}, Newest: []eventView{}}
	var of []groups.Status
	for _, g := range all {
		if g.Topic == name {
			of = append(of, g)
		}
	}
	rows, failedRows, err := r.groupRows(ctx, of, []topicRow{row})
	if err != nil {
		return nil, err
	}
	v.Failed = slices.Concat(failed, failedRows)
	v.Rows = append(v.Rows, rows...)
	for _, record := range records[:min(len(records), newestShown)] {
		v.Newest = append(v.Newest, r.event(ctx, record))
	}
	return v, nil
}
