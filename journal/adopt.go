package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// Adopt takes over the journal table and the snapshot table of another program, for example one of
// the event-store-adapter family. It verifies the keys and the indexes of both tables. It also
// verifies that each snapshot lies in the shard that config implies and has an id that Millrace can
// use, and samples the times of events. It creates the checkpoint table if that does not exist, and
// stores the descriptor. It does not change events or snapshots. Adopt may be called again.
//
// Adopt reads the snapshot table once, at half a read unit for each 4 KB. It also reads up to 1,000
// events from eight parts of the journal table; see [Config.OccurredAtUnit]. While DynamoDB
// throttles, fails or cannot be reached, Adopt tries each request again for up to 30 seconds.
//
// The tail index must exist. Add it first: DynamoDB can do this while the table is in use. Config
// must name the resolver and the number of shards that the other program uses.
//
// Errors: [*ConfigError], [ErrTableMissing], [*DescriptorMismatchError], [*CorruptItemError] for a
// snapshot in the wrong shard or an event whose time is text, [*aggregate.InvalidIDError] for an id
// that is too long, [ErrAccess], [ErrThrottled], [ErrUnavailable], and the error of ctx.
func Adopt(ctx context.Context, client Client, config Config) error {
	j, err := prepare(client, config)
	if err != nil {
		return err
	}
	tables, ok := j.Layout.(*ClassicStorage)
	if !ok {
		return &ConfigError{Field: "Layout", Reason: "is not Classic: tables of other programs always have the classic layout"}
	}
	if len(config.RequiredEncodings) > 0 {
		return &ConfigError{Field: "RequiredEncodings", Reason: "is not empty, and the program that made the tables stores plain payloads"}
	}
	for _, table := range append(j.Layout.Tables(), j.CheckpointTable()) {
		ensure := dynamo.VerifyTable
		if *table.TableName == j.Config.Tables.Checkpoint {
			ensure = dynamo.EnsureTable
		}
		if err := ensured(ensure(ctx, j.Client, table)); err != nil {
			return fmt.Errorf("adopt table %q: %w", *table.TableName, err)
		}
	}
	if err := tables.VerifyShards(ctx); err != nil {
		return fmt.Errorf("adopt journal: %w", err)
	}
	if j.Config.OccurredAtUnit, err = findUnit(ctx, j, tables, config.OccurredAtUnit); err != nil {
		return fmt.Errorf("adopt journal: %w", err)
	}
	if err := dynamo.Start(ctx, j.WriteDescriptor); err != nil {
		return fmt.Errorf("adopt journal: %w", err)
	}
	return nil
}

// patient is a client that repeats each scan, because a table has any number of pages.
type patient struct{ Client }

func (p patient) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (out *dynamodb.ScanOutput, err error) {
	err = dynamo.Start(ctx, func(ctx context.Context) error {
		out, err = p.Client.Scan(ctx, in, o...)
		return dynamo.Explain(err, *in.TableName)
	})
	return out, err
}

// VerifyShards reads every row of the snapshot table. A sample would not suffice: in a table that
// was made with 16 shards, half of the shards look right with 8.
func (l *ClassicStorage) VerifyShards(ctx context.Context) error {
	a, table := l.Config.Attributes, l.Config.Tables.Snapshot
	pages := dynamodb.NewScanPaginator(patient{l.Client}, &dynamodb.ScanInput{
		TableName:                &table,
		ProjectionExpression:     aws.String("#pk, #sk, #aid"),
		ExpressionAttributeNames: AttributeNames("#pk", a.PartitionKey, "#sk", a.SortKey, "#aid", a.AggregateID),
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
				return &CorruptItemError{Table: table, PartitionKey: partition, SortKey: sort, Reason: "has no " + a.AggregateID + " that fits its partition"}
			}
			if err := id.Validate(); err != nil {
				return fmt.Errorf("table %q, item %q / %q: %w; %s", table, partition, sort, err, shorten)
			}
			if want := l.partitionKey(id); want != partition {
				return &DescriptorMismatchError{
					Table: table, Field: fmt.Sprintf("aggregate %s in partition", id), Stored: partition,
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

// findUnit returns the unit of the descriptor, or the unit of the sampled events if there is no
// descriptor. It compares the sampled units with given, which is 0 if config names no unit.
func findUnit(ctx context.Context, j *Engine, tables *ClassicStorage, given time.Duration) (time.Duration, error) {
	var stored Descriptor
	err := dynamo.Start(ctx, func(ctx context.Context) (err error) {
		stored, err = j.ReadDescriptor(ctx)
		return err
	})
	switch {
	case errors.Is(err, ErrNoDescriptor):
	case err != nil:
		return 0, err
	case given == 0:
		return stored.Unit, nil
	}
	found, events, err := tables.SampleUnits(ctx)
	if err != nil {
		return 0, err
	}
	switch {
	case events == 0 && given == 0:
		return 0, &ConfigError{Field: "OccurredAtUnit", Reason: "is 0, and there are no events yet: set the unit in which the other program will write their times"}
	case len(found) == 0 && given == 0:
		return time.Millisecond, nil
	case len(found) == 1 && given == 0:
		return found[0], nil
	case given == 0:
		return 0, &ConfigError{Field: "OccurredAtUnit", Reason: fmt.Sprintf(
			"is 0, and events have their times in %s: choose the unit in which all programs write from now on", UnitNames(found...))}
	case len(found) > 0 && !slices.Contains(found, given):
		return 0, &ConfigError{Field: "OccurredAtUnit", Reason: fmt.Sprintf(
			"is %s, and events have their times in %s", UnitNames(given), UnitNames(found...))}
	}
	return given, nil
}

// SampleUnits returns the units of the times of some events, without repeats, and how many events
// have a time.
func (l *ClassicStorage) SampleUnits(ctx context.Context) (found []time.Duration, events int, err error) {
	a, table := l.Config.Attributes, l.Config.Tables.Journal
	for part := range int32(sampledParts) {
		out, err := patient{l.Client}.Scan(ctx, &dynamodb.ScanInput{
			TableName: &table, Segment: aws.Int32(part), TotalSegments: aws.Int32(sampledParts), Limit: aws.Int32(sampledInPart),
			ProjectionExpression:     aws.String("#pk, #sk, #at"),
			ExpressionAttributeNames: AttributeNames("#pk", a.PartitionKey, "#sk", a.SortKey, "#at", a.OccurredAt),
		})
		if err != nil {
			return nil, 0, err
		}
		for _, it := range out.Items {
			if _, text := it[a.OccurredAt].(*types.AttributeValueMemberS); text {
				partition, sort := l.KeysOf(it)
				return nil, 0, &CorruptItemError{
					Table: table, PartitionKey: partition, SortKey: sort,
					Reason: "has text in " + a.OccurredAt + ", which the tail index leaves out: make it a number in all rows, then adopt the tables",
				}
			}
			if it[a.OccurredAt] != nil {
				events++
			}
			if unit, ok := UnitOf(it[a.OccurredAt]); ok && !slices.Contains(found, unit) {
				found = append(found, unit)
			}
		}
	}
	return found, events, nil
}

func UnitNames(units ...time.Duration) string {
	names := make([]string, len(units))
	for i, unit := range slices.Sorted(slices.Values(units)) {
		names[i] = TimeUnits[unit]
	}
	return strings.Join(names, " and ")
}
