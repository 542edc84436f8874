package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/campaign"
)

// row is an event in the table. The tables are read without the library, since its reads are under
// test.
type row struct {
	number   uint64
	last     uint64 // of the events in the same item
	commitID string
	token    token
	event    aggregate.Event[state]
}

// inspect compares the tables, and the results of the library, with the records of the writers.
func (w *running) inspect(ctx context.Context, writers []*writer) (campaign.Report, error) {
	j, err := journal.Open(ctx, w.Client, journal.Config{Layout: w.Layout, Encodings: w.encodings})
	if err != nil {
		return campaign.Report{}, err
	}
	if err := w.finish(ctx, j); err != nil {
		return campaign.Report{}, err
	}
	histories, err := w.histories(ctx, "")
	if err != nil {
		return campaign.Report{}, err
	}
	heads, err := w.heads(ctx)
	if err != nil {
		return campaign.Report{}, err
	}
	sent, err := w.inOutbox(ctx)
	if err != nil {
		return campaign.Report{}, err
	}
	report := campaign.Report{}
	commits := map[string]bool{}
	found := map[uint64][]row{}
	for id, h := range heads {
		histories[id] = w.checkRemoved(id, histories[id], h)
	}
	for id, rows := range histories {
		w.checkNumbers(id, rows, heads[id].version)
		for _, r := range rows {
			commits[r.commitID] = true
			found[r.token.command()] = append(found[r.token.command()], r)
			if o := w.truth.commands[r.token.command()]; o == nil || o.id != id {
				w.truth.report(Wrong, "event %d of thing %s is of no command that was sent to it", r.number, id)
			}
		}
		report.Events += len(rows)
	}
	for id, h := range heads {
		if len(histories[id]) == 0 {
			w.truth.report(Gap, "the head of thing %s is at version %d, and there are no events", id, h.version)
		}
	}
	for command := range w.truth.orders {
		if written := len(found[command]) > 0; written != sent[command] {
			w.truth.report(Wrong, "command %d: its events are there: %v, its row in the outbox: %v", command, written, sent[command])
		}
	}
	w.checkPairs(found)
	for command, o := range w.truth.commands {
		if err := w.checkCommand(ctx, j, command, o, found[command], heads[o.id]); err != nil {
			return campaign.Report{}, err
		}
	}
	if err := w.checkStates(ctx, j, histories, heads, writers); err != nil {
		return campaign.Report{}, err
	}
	// Failures after that are not findings.
	if err := ctx.Err(); err != nil {
		return campaign.Report{}, err
	}
	report.Count, report.Findings, report.Seen = len(commits), w.truth.findings, w.truth.counts
	return report, nil
}

// checkNumbers checks that the numbers are 1 to n, each once, and that the head is at n.
func (w *running) checkNumbers(id string, rows []row, head uint64) {
	next := uint64(1)
	for _, r := range rows {
		if r.number != next {
			w.truth.report(Gap, "thing %s has event %d where %d should be", id, r.number, next)
		}
		next = r.number + 1
	}
	if head != next-1 {
		w.truth.report(Gap, "the head of thing %s is at version %d, its last event is %d", id, head, next-1)
	}
}

// checkCommand checks that acknowledged events are there, refused ones are not, and a commit is
// complete.
func (w *running) checkCommand(ctx context.Context, j *journal.Journal, command uint64, o *outcome, rows []row, h head) error {
	name := fmt.Sprintf("command %d on thing %s", command, o.id)
	if len(rows) < o.sure {
		w.truth.report(Lost, "%s: %d events were acknowledged, and %d are there", name, o.sure, len(rows))
	}
	if len(rows) > o.sure+o.maybe {
		w.truth.report(Wrong, "%s: %d events are there, %d were acknowledged and %d may have been written", name, len(rows), o.sure, o.maybe)
	}
	for i, r := range rows {
		if r.token.index() != i {
			w.truth.report(Wrong, "%s: event %d of it is written in place of its event %d", name, r.token.index(), i)
			break
		}
		if o.split {
			continue
		}
		if o.first > 0 && r.number != o.first+uint64(i) {
			w.truth.report(Lost, "%s: event %d of it has number %d, not %d as acknowledged", name, i, r.number, o.first+uint64(i))
			break
		}
		if r.number != rows[0].number+uint64(i) || r.commitID != rows[0].commitID || r.token.count() != len(rows) {
			w.truth.report(Wrong, "%s: %d events of %d are one commit", name, i, r.token.count())
			break
		}
	}
	if o.unknown == nil {
		return nil
	}
	done, err := j.Resolve(ctx, o.unknown)
	if err != nil {
		return err
	}
	if done {
		w.truth.see("unknown and written")
	}
	// A repeated decision makes another commit; the unknown one is the last. A commit without
	// events is only a guard.
	hidden := w.Layout == journal.Classic && // as Resolve documents
		!done && len(rows) > 0 && rows[0].number < h.truncatedBefore && o.unknown.CommandID == ""
	if done != (len(rows) > 0) && o.maybe > 0 && !hidden {
		w.truth.report(Wrong, "%s: it is resolved as written: %v, and %d events are there", name, done, len(rows))
	}
	return nil
}

// checkStates checks that every state that a writer saw, and every state that is loaded now,
// follows from the events.
func (w *running) checkStates(
	ctx context.Context, j *journal.Journal, histories map[string][]row, heads map[string]head, writers []*writer,
) error {
	var loaders []*repository.Repository[state]
	for _, ignore := range []bool{true, false} {
		repo, err := repository.New(j, things, repository.Config{IgnoreSnapshots: ignore})
		if err != nil {
			return err
		}
		loaders = append(loaders, repo)
	}
	for i, id := range slices.Sorted(maps.Keys(w.truth.floors)) {
		loaders := append(slices.Clip(loaders), writers[i%len(writers)].repo)
		rows := histories[id]
		var s state
		fold := map[uint64]uint64{}
		for _, r := range rows {
			r.event.Apply(&s)
			fold[r.number] = s.digest()
		}
		for version, digest := range w.truth.digests[id] {
			if fold[version] != digest {
				w.truth.report(Wrong, "thing %s was seen at version %d in a state that does not follow from its events", id, version)
			}
		}
		for i, repo := range loaders {
			a, err := repo.Load(ctx, id)
			switch {
			case errors.Is(err, journal.ErrNotFound) && len(rows) == 0:
			case errors.As(err, new(*journal.DeletedError)) && heads[id].deleted:
			// The first repository ignores snapshots, so it needs the removed events.
			case errors.As(err, new(*journal.TruncatedError)) && heads[id].truncatedBefore > 1 && i == 0:
			case err != nil:
				w.truth.report(Wrong, "load thing %s at the end: %v", id, err)
			case a.Version != uint64(len(rows)) || a.State.digest() != s.digest():
				w.truth.report(Wrong, "load thing %s at the end: version %d with %d events, and the journal has %d",
					id, a.Version, a.State.Count, len(rows))
			}
		}
		if err := w.checkAfter(ctx, j, id, heads[id]); err != nil {
			return err
		}
	}
	return nil
}

// checkAfter checks that the reads because of hints yield all events of a thing in order, whatever
// version the hints claim.
func (w *running) checkAfter(ctx context.Context, j *journal.Journal, id string, h head) error {
	next := max(1, h.truncatedBefore)
	aligned := next == 1 || w.Layout != journal.Packed // a truncation may end inside a commit
	claims := []uint64{0, next + 30, math.MaxUint64}
	for calls := 0; !h.deleted && next <= h.version; calls++ {
		begun := next
		found, err := j.Internal().After(ctx, nameOf(id), next-1, claims[min(calls, 2)], func(r *journal.Record) bool {
			if r.Number != next {
				w.truth.report(Gap, "a hint about thing %s leads from event %d to event %d", id, next-1, r.Number)
			}
			next = r.Number + 1
			return true
		})
		switch {
		case err == nil && found == 0 && !aligned:
			next++
		case err != nil || next <= begun || found != next-1:
			w.truth.report(Gap, "a hint about thing %s leads from event %d to %d, of %d: %v", id, begun-1, found, h.version, err)
			return nil
		default:
			aligned = true
		}
	}
	return ctx.Err()
}

// histories returns all events, or those of one thing, in the order of their numbers.
func (w *running) histories(ctx context.Context, only string) (map[string][]row, error) {
	all := map[string][]row{}
	read := w.classicRows
	if w.Layout == journal.Packed {
		read = w.packedRows
	}
	err := read(ctx, only, func(id string, r row) { all[id] = append(all[id], r) })
	for _, rows := range all {
		slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.number, b.number) })
	}
	return all, err
}

func (w *running) classicRows(ctx context.Context, only string, see func(id string, r row)) error {
	return w.scan(ctx, "journal", only, func(id string, number uint64, it map[string]types.AttributeValue) {
		r := row{number: number, last: number}
		if commit, ok := it["commit_id"].(*types.AttributeValueMemberS); ok {
			r.commitID = commit.Value
		}
		eventType, _ := it["event_type"].(*types.AttributeValueMemberS)
		payload, _ := it["payload"].(*types.AttributeValueMemberB)
		encoding, _ := it["encoding"].(*types.AttributeValueMemberS)
		if encoding == nil {
			encoding = new(types.AttributeValueMemberS)
		}
		if eventType == nil || payload == nil {
			w.truth.report(Lost, "event %d of thing %s has no type or payload", number, id)
			return
		}
		if w.read(&r, id, eventType.Value, encoding.Value, payload.Value) {
			see(id, r)
		}
	})
}

// read sets the fields of a row from its event. It reports an event that cannot be read.
func (w *running) read(r *row, id, eventType, encoding string, stored []byte) bool {
	event, err := decode(nameOf(id), r.number, eventType, encoding, stored)
	if err != nil {
		w.truth.report(Lost, "event %d of thing %s cannot be read: %v", r.number, id, err)
		return false
	}
	switch e := event.(type) {
	case happened:
		r.token = e.Token
	case loaded:
		r.token = e.Token
	}
	r.event = event
	return true
}

// decode returns the event for bytes in the table.
func decode(id aggregate.ID, number uint64, eventType, encoding string, stored []byte) (aggregate.Event[state], error) {
	payload, err := plain(journal.Place{Aggregate: id, Number: number, EventType: eventType}, encoding, stored)
	if err != nil {
		return nil, err
	}
	return things.Decode(eventType, payload)
}

// head is a head in the table.
type head struct {
	version, truncatedBefore uint64
	deleted                  bool
	// Number of states of the thing, including redundant ones.
	states int
}

// heads returns all heads.
func (w *running) heads(ctx context.Context) (map[string]head, error) {
	if w.Layout == journal.Packed {
		return w.packedHeads(ctx)
	}
	all, states := map[string]head{}, map[string]int{}
	listed, redundant := map[string][]uint64{}, map[string][]uint64{}
	err := w.scan(ctx, "snapshot", "", func(id string, number uint64, it map[string]types.AttributeValue) {
		if it["payload"] != nil {
			states[id]++
		}
		if number > 0 {
			redundant[id] = append(redundant[id], number)
			return
		}
		all[id] = head{version: numeric(it["version"]), truncatedBefore: numeric(it["truncated_before"]), deleted: it["deleted_at"] != nil}
		if list, ok := it["snapshot_redundant"].(*types.AttributeValueMemberL); ok {
			for _, n := range list.Value {
				listed[id] = append(listed[id], numeric(n))
			}
		}
	})
	for id, h := range all {
		h.states = states[id]
		all[id] = h
	}
	for id, numbers := range redundant {
		if all[id].deleted {
			// checkRemoved checks it when the deletion is finished.
			continue
		}
		for _, n := range numbers {
			if !slices.Contains(listed[id], n) {
				w.truth.report(Wrong, "redundant snapshot %d of thing %s is not listed, so it is never removed", n, id)
			}
		}
	}
	return all, err
}

// scan returns the items of all things in a table, or of one of them. The keys identify an item;
// its content must match them.
func (w *running) scan(
	ctx context.Context, table, only string, see func(id string, number uint64, it map[string]types.AttributeValue),
) error {
	input := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
	if only != "" {
		input.FilterExpression = aws.String("begins_with(skey, :prefix)")
		input.ExpressionAttributeValues = map[string]types.AttributeValue{
			":prefix": &types.AttributeValueMemberS{Value: nameOf(only).String() + "-"},
		}
	}
	pages := dynamodb.NewScanPaginator(w.Client, input)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, it := range page.Items {
			key, _ := it["skey"].(*types.AttributeValueMemberS)
			if key == nil {
				continue
			}
			id, ok := strings.CutPrefix(key.Value, things.Type()+"-")
			id, number, more := strings.Cut(id, "-")
			if !ok || !more { // it is the descriptor
				continue
			}
			if strings.HasSuffix(number, "~") { // it is the guard of a command
				continue
			}
			n, err := strconv.ParseUint(number, 10, 64)
			if err != nil || n != numeric(it["seq_nr"]) {
				w.truth.report(Gap, "item %q of table %s does not contain its number", key.Value, table)
			}
			see(id, n, it)
		}
	}
	return nil
}

func numeric(v types.AttributeValue) uint64 {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	value, _ := strconv.ParseUint(n.Value, 10, 64)
	return value
}
