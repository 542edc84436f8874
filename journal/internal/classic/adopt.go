package classic

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// patient is a client that repeats each scan, because a table has any number of pages.
type patient struct{ journaltype.Client }

func (p patient) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (out *dynamodb.ScanOutput, err error) {
	err = dynamo.Start(ctx, func(ctx context.Context) error {
		out, err = p.Client.Scan(ctx, in, o...)
		return dynamo.Explain(err, *in.TableName)
	})
	return out, err
}

// VerifyShards reads every row of the snapshot table. A sample would not suffice: in a table that
// was made with 16 shards, half of the shards look right with 8.
func (l *layout) VerifyShards(ctx context.Context) error {
	a, name := l.Config.Attributes, l.Config.Tables.Snapshot
	pages := dynamodb.NewScanPaginator(patient{l.Client}, &dynamodb.ScanInput{
		TableName:                &name,
		ProjectionExpression:     aws.String("#pk, #sk, #aid"),
		ExpressionAttributeNames: table.AttributeNames("#pk", a.PartitionKey, "#sk", a.SortKey, "#aid", a.AggregateID),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, it := range page.Items {
			id, ok := l.aggregateOf(it)
			partition, sort := l.KeysOf(it)
			if !ok {
				return &journaltype.CorruptItemError{Table: name, PartitionKey: partition, SortKey: sort, Reason: "has no " + a.AggregateID + " that fits its partition"}
			}
			if err := id.Validate(); err != nil {
				return fmt.Errorf("table %q, item %q / %q: %w; %s", name, partition, sort, err, shorten)
			}
			if want := l.partitionKey(id); want != partition {
				return &journaltype.DescriptorMismatchError{
					Table: name, Field: fmt.Sprintf("aggregate %s in partition", id), Stored: partition,
					Given: fmt.Sprintf("%s (resolver %s, %d shards)", want, l.Config.Resolver.Name(), l.Config.Shards),
				}
			}
		}
	}
	return nil
}

// Adopt samples up to sampledInPart events in each of sampledParts segments of the journal table.
const (
	sampledParts  = 8
	sampledInPart = 125
)

// SampleUnits returns the units of the times of some events, without repeats, and how many events
// have a time.
func (l *layout) SampleUnits(ctx context.Context) (found []time.Duration, events int, err error) {
	a, name := l.Config.Attributes, l.Config.Tables.Journal
	for part := range int32(sampledParts) {
		out, err := patient{l.Client}.Scan(ctx, &dynamodb.ScanInput{
			TableName: &name, Segment: aws.Int32(part), TotalSegments: aws.Int32(sampledParts), Limit: aws.Int32(sampledInPart),
			ProjectionExpression:     aws.String("#pk, #sk, #at"),
			ExpressionAttributeNames: table.AttributeNames("#pk", a.PartitionKey, "#sk", a.SortKey, "#at", a.OccurredAt),
		})
		if err != nil {
			return nil, 0, err
		}
		for _, it := range out.Items {
			if _, text := it[a.OccurredAt].(*types.AttributeValueMemberS); text {
				partition, sort := l.KeysOf(it)
				return nil, 0, &journaltype.CorruptItemError{
					Table: name, PartitionKey: partition, SortKey: sort,
					Reason: "has text in " + a.OccurredAt + ", which the tail index leaves out: make it a number in all rows, then adopt the tables",
				}
			}
			if it[a.OccurredAt] != nil {
				events++
			}
			if unit, ok := table.UnitOf(it[a.OccurredAt]); ok && !slices.Contains(found, unit) {
				found = append(found, unit)
			}
		}
	}
	return found, events, nil
}
