package classic

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
)

func (l *layout) Newest(ctx context.Context, aggregateType string, limit int, yield func(storage.TailPage) error) error {
	shards := make([][]readRecord, l.Config.Shards)
	reads, reading := errgroup.WithContext(ctx)
	reads.SetLimit(engine.NewestAtOnce)
	for shard := range shards {
		reads.Go(func() (err error) {
			shards[shard], err = table.Backwards(reading, l.Table, &dynamodb.QueryInput{
				TableName:                 &l.Config.Tables.Journal,
				IndexName:                 &l.Config.Indexes.JournalTail,
				KeyConditionExpression:    aws.String("#pk = :shard"),
				ExpressionAttributeNames:  table.AttributeNames("#pk", l.Config.Attributes.PartitionKey),
				ExpressionAttributeValues: table.Item{":shard": table.StringValue(storage.ShardKey(aggregateType, shard))},
			}, limit, func(row rows.Row) readRecord { return l.readRow(row, false) })
			return dynamo.Explain(err, l.Config.Tables.Journal)
		})
	}
	if err := reads.Wait(); err != nil {
		return err
	}
	var page storage.TailPage
	for _, entries := range shards {
		for _, e := range entries {
			if e.corrupt != nil {
				page.Corrupt = append(page.Corrupt, e.corrupt)
			} else {
				page.Records = append(page.Records, e.record)
			}
		}
	}
	engine.SortNewest(page.Records)
	return yield(page)
}
