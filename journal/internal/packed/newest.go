package packed

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// newestTogether is the number of entries whose events are read together.
const newestTogether = 50

func (p *layout) Newest(ctx context.Context, aggregateType string, limit int, yield func(storage.TailPage) error) error {
	entries, corrupt, err := p.newestEntries(ctx, aggregateType, limit)
	if err != nil {
		return err
	}
	page := storage.TailPage{Corrupt: corrupt}
	for some := range slices.Chunk(entries, newestTogether) {
		if err := p.addEvents(ctx, &page, some); err != nil {
			return dynamo.Explain(err, p.Config.Tables.Journal)
		}
		engine.SortNewest(page.Records)
		if err := yield(page); err != nil {
			return err
		}
		page = storage.TailPage{}
	}
	return yield(page)
}

// newestEntries returns up to limit entries of each partition of the tail, the newest first.
func (p *layout) newestEntries(ctx context.Context, aggregateType string, limit int) (entries []*item, corrupt []*journaltype.CorruptItemError, err error) {
	if err := p.knowPartitions(ctx); err != nil {
		return nil, nil, err
	}
	var parts []int
	for shard := range p.Config.Shards {
		parts = append(parts, p.tailParts(shard)...)
	}
	found := make([][]readItem, len(parts))
	reads, reading := errgroup.WithContext(ctx)
	reads.SetLimit(engine.NewestAtOnce)
	for i, part := range parts {
		reads.Go(func() (err error) {
			found[i], err = table.Backwards(reading, p.Table, &dynamodb.QueryInput{
				TableName:                 &p.Config.Tables.Journal,
				IndexName:                 &p.Config.Indexes.JournalTail,
				KeyConditionExpression:    aws.String("#p = :p"),
				ExpressionAttributeNames:  table.AttributeNames("#p", attrTail),
				ExpressionAttributeValues: table.Item{":p": table.StringValue(partKey(aggregateType, part))},
			}, limit, p.parseRow)
			return dynamo.Explain(err, p.Config.Tables.Journal)
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, nil, err
	}
	for _, read := range slices.Concat(found...) {
		if read.err != nil {
			corrupt = append(corrupt, engine.AsCorrupt(read.err))
		} else {
			entries = append(entries, read.item)
		}
	}
	slices.SortFunc(entries, func(a, b *item) int { // the same order as in SortNewest
		return cmp.Or(cmp.Compare(b.millis, a.millis), strings.Compare(b.id.Value, a.id.Value), cmp.Compare(b.first, a.first))
	})
	return entries, corrupt, nil
}
