package packed

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// The tail index has an entry for each item of a commit. Each shard has one or more partitions in
// it. A page of a shard's tail consists of a page of each of them.

// largePage bounds a page in KB: the total size of its items whose events the index lacks, before
// compression. A page of the index can have thousands of such entries. After a page that was cut
// for this reason, the next page reads fewEntries. A page also has at most mostCompressed entries
// with compressed events, because each of them can have 1 KB before compression.
const (
	largePage      = 1 << 10
	fewEntries     = 500
	mostCompressed = 4 << 10
)

// If a shard has several partitions, a page has entriesTogether entries of all of them together, or
// numbersTogether if only numbers are read. An entry can have about 1 KB. The page has at least
// fewestEntries of each partition. Up to partsAtOnce partitions are read at the same time.
const (
	entriesTogether = 1000
	numbersTogether = 20_000
	fewestEntries   = 10
	partsAtOnce     = 32
)

// partCursor is a place in one partition of the tail.
type partCursor struct {
	millis int64
	// The keys of the item before this place, as they are stored. Empty for the start of the
	// millisecond.
	partition, number, time string
	// more: entries follow. few: read few entries, since their items are large.
	more, few bool
}

func (p *layout) Tail(ctx context.Context, q storage.TailQuery) (storage.TailPage, error) {
	if err := p.knowPartitions(ctx); err != nil {
		return storage.TailPage{}, err
	}
	parts := p.tailParts(q.Shard)
	if q.Part > 0 {
		parts = parts[q.Part-1 : q.Part]
	}
	cursors := p.cursorsOf(q.After, parts)
	pages, err := p.partPages(ctx, q, parts, cursors)
	if err != nil {
		return storage.TailPage{}, dynamo.Explain(err, p.Config.Tables.Journal)
	}
	if _, age := p.known(p.Config.Now()); age >= mostUnchecked {
		return storage.TailPage{}, fmt.Errorf("%w: a page of the tail took %s", journaltype.ErrUnavailable, age)
	}
	return p.joinPages(ctx, q, parts, cursors, pages)
}

// partPage is a page of the index entries of one partition.
type partPage struct {
	entries []tailEntry
	more    bool
}

// tailEntry is an entry of the index.
type tailEntry struct {
	part    int // index of the partition in the shard
	item    *item
	corrupt *journaltype.CorruptItemError // the reason why it cannot be decoded
	unread  bool                          // its events are not needed, and not in the index
	at      partCursor
}

// partPages reads a page of each partition. If some partitions are behind the others, it reads
// these first. It reads the others only up to the same time: later entries would be read again.
func (p *layout) partPages(ctx context.Context, q storage.TailQuery, parts []int, cursors []partCursor) ([]partPage, error) {
	pages := make([]partPage, len(parts))
	order := make([]int, len(parts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(cursors[a].millis, cursors[b].millis) })
	if !slices.ContainsFunc(cursors, func(c partCursor) bool { return c.more }) {
		reads, ctx := errgroup.WithContext(ctx)
		reads.SetLimit(partsAtOnce)
		for _, i := range order {
			reads.Go(func() (err error) {
				pages[i], err = p.partPage(ctx, q, parts[i], len(parts), cursors[i])
				return err
			})
		}
		return pages, reads.Wait()
	}
	for _, i := range order {
		var err error
		if pages[i], err = p.partPage(ctx, q, parts[i], len(parts), cursors[i]); err != nil {
			return nil, err
		}
		if n := len(pages[i].entries); pages[i].more && n > 0 {
			q.Until = time.UnixMilli(pages[i].entries[n-1].at.millis)
		}
	}
	return pages, nil
}

func (p *layout) partPage(ctx context.Context, q storage.TailQuery, part, parts int, after partCursor) (page partPage, err error) {
	input, some := p.tailQuery(q, part, parts, after)
	if !some {
		return page, nil
	}
	found, err := rows.Query(ctx, p.Source, input, func(row rows.Row) tailEntry {
		read := p.parseRow(row)
		it := read.item
		return tailEntry{
			item: it, corrupt: engine.AsCorrupt(read.err),
			at: partCursor{millis: millisOfKey(it), partition: it.partition, number: it.number, time: it.time},
		}
	})
	return partPage{entries: found.Items, more: found.LastKey != nil}, err
}

// joinPages merges the pages of the partitions, up to the time to which all of them were read, or
// less if there are many events.
func (p *layout) joinPages(ctx context.Context, q storage.TailQuery, parts []int, cursors []partCursor, pages []partPage) (storage.TailPage, error) {
	frontier, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i, page := range pages {
		last = max(last, cursors[i].millis)
		if n := len(page.entries); page.more && n > 0 {
			frontier = min(frontier, page.entries[n-1].at.millis)
		}
	}
	var all []tailEntry
	for i, page := range pages {
		cursors[i].more = page.more
		for _, e := range page.entries {
			e.part = i
			e.unread = e.isUnneeded(q)
			all = append(all, e)
		}
	}
	if len(parts) > 1 {
		slices.SortStableFunc(all, func(a, b tailEntry) int { return cmp.Compare(a.at.millis, b.at.millis) })
	}
	joined, large, compressed := storage.TailPage{Records: []*journaltype.Record{}}, 0, 0
	kept := all
	for i, e := range all {
		if !e.unread {
			large += e.largeKB(q)
		}
		if isCompressed(e.item.events) {
			compressed++
		}
		if e.at.millis > frontier || i > 0 && large > largePage || compressed > mostCompressed {
			frontier = min(frontier, all[i-1].at.millis)
			kept = all[:i]
			break
		}
	}
	few := len(kept) < len(all) && large > largePage
	for _, e := range all[len(kept):] {
		cursors[e.part].more = true
	}
	for i := range cursors {
		cursors[i].few = few || cursors[i].few && large > 0
	}
	var entries []*item
	for _, e := range kept {
		switch {
		case e.corrupt != nil:
			joined.Corrupt = append(joined.Corrupt, e.corrupt)
		case e.unread:
			joined.Unread = append(joined.Unread, numbersOnly(e.item)...)
		default:
			entries = append(entries, e.item)
		}
		e.at.more, e.at.few = cursors[e.part].more, cursors[e.part].few
		cursors[e.part] = e.at
		last = max(last, e.at.millis)
	}
	joined.More = slices.ContainsFunc(cursors, func(c partCursor) bool { return c.more })
	joined.Next = q.After
	if len(kept) > 0 || joined.More {
		joined.Next = joinCursors(min(frontier, last), parts, cursors)
	}
	if q.NumbersOnly {
		for _, it := range entries {
			if it.count > storage.MaxItemBytes {
				joined.Corrupt = append(joined.Corrupt, it.corrupt(fmt.Sprintf("has an invalid count of %d events", it.count)))
				continue
			}
			joined.Records = append(joined.Records, numbersOnly(it)...)
		}
		return joined, nil
	}
	return joined, dynamo.Explain(p.addEvents(ctx, &joined, entries), p.Config.Tables.Journal)
}

// isUnneeded reports whether the reader of the tail does not need the events, which the index
// lacks.
func (e *tailEntry) isUnneeded(q storage.TailQuery) bool {
	if q.Needs == nil || q.NumbersOnly || e.corrupt != nil || !e.item.lacksEvents() || e.item.count > storage.MaxItemBytes {
		return false
	}
	return !q.Needs(e.item.id, e.item.first, e.item.last())
}

// largeKB returns how many KB must be read from the table for an entry.
func (e *tailEntry) largeKB(q storage.TailQuery) int {
	if q.NumbersOnly || e.corrupt != nil || !e.item.lacksEvents() {
		return 0
	}
	return max(1, e.item.size)
}

func (p *layout) tailQuery(q storage.TailQuery, part, parts int, after partCursor) (input *dynamodb.QueryInput, some bool) {
	a := p.Config.Attributes
	partition := partKey(q.AggregateType, part)
	input = &dynamodb.QueryInput{
		TableName:                &p.Config.Tables.Journal,
		IndexName:                &p.Config.Indexes.JournalTail,
		KeyConditionExpression:   aws.String("#p = :p AND #t >= :from"),
		ExpressionAttributeNames: table.AttributeNames("#p", attrTail, "#t", attrTime),
		ExpressionAttributeValues: table.Item{
			":p": table.StringValue(partition), ":from": table.NumberValue(after.millis),
		},
	}
	if !q.Until.IsZero() {
		until := q.Until.UnixMilli()
		if until < after.millis {
			return nil, false // DynamoDB refuses an empty range
		}
		input.KeyConditionExpression = aws.String("#p = :p AND #t BETWEEN :from AND :until")
		input.ExpressionAttributeValues[":until"] = table.NumberValue(until)
	}
	if q.NumbersOnly {
		input.ProjectionExpression = aws.String("#pk, #sk, #t, #c, #n")
		for alias, name := range map[string]string{"#pk": a.PartitionKey, "#sk": a.SortKey, "#c": attrCommit, "#n": attrCount} {
			input.ExpressionAttributeNames[alias] = name
		}
	}
	limit := q.Limit
	if parts > 1 && limit == 0 {
		together := entriesTogether
		if q.NumbersOnly {
			together = numbersTogether
		}
		limit = max(together/parts, fewestEntries)
	}
	if after.few && !q.NumbersOnly && (limit == 0 || limit > fewEntries) {
		limit = fewEntries
	}
	if limit > 0 {
		input.Limit = aws.Int32(int32(min(limit, math.MaxInt32)))
	}
	if after.partition != "" {
		input.ExclusiveStartKey = p.keyIn(after.partition, after.number)
		input.ExclusiveStartKey[attrTail] = table.StringValue(partition)
		input.ExclusiveStartKey[attrTime] = &types.AttributeValueMemberN{Value: after.time}
	}
	return input, true
}

// millisOfKey also accepts a number that is not whole, which only another program can have written.
func millisOfKey(it *item) int64 {
	if it.millis != 0 || it.time == "" {
		return it.millis
	}
	at, _ := strconv.ParseFloat(it.time, 64)
	return int64(math.Floor(max(math.MinInt64, min(at, math.MaxInt64/2))))
}

func numbersOnly(it *item) []*journaltype.Record {
	records := make([]*journaltype.Record, it.count)
	at := time.UnixMilli(it.millis).UTC()
	for i := range records {
		records[i] = &journaltype.Record{Aggregate: it.id, Number: it.first + uint64(i), OccurredAt: at, WrittenAt: at, CommitID: it.commitID}
	}
	return records
}

// addEvents reads the events that the index lacks from the table, and adds all events to the page
// in order. If an eventually consistent read does not return an item, it reads the item again. An
// item without events has lost them since.
func (p *layout) addEvents(ctx context.Context, page *storage.TailPage, entries []*item) error {
	missing := map[[2]string]int{} // indexes in entries, by place
	for i, it := range entries {
		if it.lacksEvents() {
			missing[it.place()] = i
		}
	}
	for _, consistent := range []bool{false, true} {
		var keys []table.Item
		for i, it := range entries {
			if at, ok := missing[it.place()]; ok && at == i { // DynamoDB refuses duplicate keys
				keys = append(keys, p.keyIn(it.partition, it.number))
			}
		}
		items, err := table.GetMany(ctx, p.Table, p.Config.Tables.Journal, keys, consistent, p.parseRow)
		if err != nil {
			return err
		}
		for _, read := range items {
			it := read.item
			if read.err != nil {
				if consistent { // the consistent read follows the other one
					page.Corrupt = append(page.Corrupt, engine.AsCorrupt(read.err))
				}
				continue
			}
			// The eventually consistent read may return the placeholder that was there before.
			if i, ok := missing[it.place()]; ok && (consistent || it.commit == entries[i].commit) {
				entries[i] = it
				delete(missing, it.place())
			}
		}
	}
	for _, it := range entries {
		if _, ok := missing[it.place()]; ok {
			continue
		}
		records, err := p.recordsOf(it)
		if err != nil {
			page.Corrupt = append(page.Corrupt, engine.AsCorrupt(err))
			continue
		}
		page.Records = append(page.Records, records...)
	}
	return nil
}

// cursorSeparator is not in types, numbers or digits. An id may contain it, and comes last.
const cursorSeparator = "\x1e"

// joinCursors makes the cursor of a shard. Its text contains the place in each partition.
func joinCursors(at int64, parts []int, cursors []partCursor) storage.Cursor {
	joined := storage.Cursor{OccurredAt: at}
	texts := make([]string, len(parts))
	for i, c := range cursors {
		flags := ""
		if c.more {
			flags += "m"
		}
		if c.few {
			flags += "f"
		}
		texts[i] = strings.Join([]string{
			strconv.Itoa(parts[i]), strconv.FormatInt(c.millis, 10), flags, c.time, c.number, strconv.Quote(c.partition),
		}, cursorSeparator)
	}
	joined.SortKey = strings.Join(texts, "\n")
	return joined
}

// cursorsOf reverses joinCursors. A cursor without text means the same time in all partitions.
func (p *layout) cursorsOf(after storage.Cursor, parts []int) []partCursor {
	known := map[int]partCursor{}
	for _, text := range strings.Split(after.SortKey, "\n") {
		f := strings.SplitN(text, cursorSeparator, 6)
		if len(f) != 6 {
			continue
		}
		part, _ := strconv.Atoi(f[0])
		c := partCursor{more: strings.Contains(f[2], "m"), few: strings.Contains(f[2], "f"), time: f[3], number: f[4]}
		c.millis, _ = strconv.ParseInt(f[1], 10, 64)
		c.partition, _ = strconv.Unquote(f[5])
		known[part] = c
	}
	cursors := make([]partCursor, len(parts))
	for i, part := range parts {
		c, ok := known[part]
		if !ok {
			c.millis = after.OccurredAt
			if after == (storage.Cursor{}) {
				c.millis = math.MinInt64
			}
		}
		cursors[i] = c
	}
	return cursors
}
