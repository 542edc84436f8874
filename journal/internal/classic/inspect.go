package classic

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (l *layout) Inspect(ctx context.Context, id aggregate.ID, found *storage.Inspection, each func(*journaltype.Record)) error {
	if err := l.inspectHead(ctx, id, found); err != nil {
		return err
	}
	return l.inspectEvents(ctx, id, found, each)
}

func (l *layout) inspectHead(ctx context.Context, id aggregate.ID, found *storage.Inspection) error {
	row, err := l.GetItem(ctx, l.Config.Tables.Snapshot, l.key(id, 0))
	if err != nil {
		return err
	}
	head, err := l.headOf(id, row)
	var corrupt *journaltype.CorruptItemError
	switch {
	case errors.Is(err, journaltype.ErrNotFound):
		return nil
	case errors.As(err, &corrupt):
		found.Corrupt = append(found.Corrupt, corrupt)
		return nil
	case err != nil:
		return err
	}
	found.Head = &head
	if snapshot := l.snapshotOf(row); snapshot != nil {
		found.SnapshotNumber = snapshot.Number
	}
	return nil
}

func (l *layout) inspectEvents(ctx context.Context, id aggregate.ID, found *storage.Inspection, each func(*journaltype.Record)) error {
	return l.numbered(ctx, l.Config.Tables.Journal, id, nil, func(items []numberedItem) error {
		for _, it := range items {
			r, err := l.recordOf(it.item)
			var corrupt *journaltype.CorruptItemError
			switch {
			case errors.As(err, &corrupt):
				corrupt.Aggregate, corrupt.Number = id, it.number
				found.Corrupt = append(found.Corrupt, corrupt)
			case err != nil:
				return err
			default:
				each(r)
			}
		}
		return nil
	})
}

func (l *layout) Strays(ctx context.Context, aggregateType string, yield func(*journaltype.CorruptItemError) bool) error {
	return l.journalPages(ctx, aggregateType, func(items []table.Item) error {
		strays, err := l.straysOf(ctx, items)
		if err != nil {
			return err
		}
		for _, stray := range strays {
			if !yield(stray) {
				return engine.ErrStop
			}
		}
		return nil
	})
}

// journalPages calls do for each page of the journal table, with the attributes that straysOf
// needs.
func (l *layout) journalPages(ctx context.Context, aggregateType string, do func([]table.Item) error) error {
	a, name := l.Config.Attributes, l.Config.Tables.Journal
	projection := aws.String("#pk, #sk, #aid, #n, #command, #format")
	names := table.AttributeNames("#pk", a.PartitionKey, "#sk", a.SortKey, "#aid", a.AggregateID, "#n", a.SequenceNumber,
		"#command", engine.AttrCommandID, "#format", engine.AttrFormat)
	if aggregateType == "" {
		pages := dynamodb.NewScanPaginator(l.Client, &dynamodb.ScanInput{
			TableName: &name, ProjectionExpression: projection, ExpressionAttributeNames: names,
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return dynamo.Explain(err, name)
			}
			if err := do(page.Items); err != nil {
				return err
			}
		}
		return nil
	}
	for shard := range l.Config.Shards {
		pages := dynamodb.NewQueryPaginator(l.Client, &dynamodb.QueryInput{
			TableName: &name, ProjectionExpression: projection, ExpressionAttributeNames: names,
			KeyConditionExpression:    aws.String("#pk = :pk"),
			ExpressionAttributeValues: table.Item{":pk": table.StringValue(storage.ShardKey(aggregateType, shard))},
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return dynamo.Explain(err, name)
			}
			if err := do(page.Items); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *layout) straysOf(ctx context.Context, items []table.Item) (strays []*journaltype.CorruptItemError, err error) {
	// sound holds one event of each aggregate. The event is reported if the aggregate has no head.
	sound := map[aggregate.ID]*journaltype.CorruptItemError{}
	for _, it := range items {
		if it[engine.AttrCommandID] != nil || it[engine.AttrFormat] != nil {
			continue // the guard of a command, or the descriptor
		}
		partition, sort := l.KeysOf(it)
		stray := &journaltype.CorruptItemError{Table: l.Config.Tables.Journal, PartitionKey: partition, SortKey: sort}
		id, ok := l.aggregateOf(it)
		number, numbered := table.UintOf(it[l.Config.Attributes.SequenceNumber])
		switch {
		case !ok:
			stray.Reason = "has no " + l.Config.Attributes.AggregateID + " that fits its partition"
		case !numbered || number == 0 || sort != storage.SortKey(id, number):
			stray.Reason = "has a sort key that does not fit its aggregate and sequence number"
		case partition != l.partitionKey(id):
			stray.Aggregate, stray.Number, stray.Reason = id, number, "is not in the shard of its aggregate, "+l.partitionKey(id)
		default:
			stray.Aggregate, stray.Number, stray.Reason = id, number, "is an event of an aggregate that has no head"
			sound[id] = stray
			continue
		}
		strays = append(strays, stray)
	}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(sound)), table.MaxKeys) {
		headless, err := l.withoutHead(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, id := range headless {
			strays = append(strays, sound[id])
		}
	}
	return strays, nil
}

// withoutHead reads several times, because an event can become visible before its head.
func (l *layout) withoutHead(ctx context.Context, ids []aggregate.ID) ([]aggregate.ID, error) {
	wait := table.UntilShown()
	for {
		keys := make([]table.Item, len(ids))
		for i, id := range ids {
			keys[i] = l.key(id, 0)
		}
		items, err := l.BatchGetKeys(ctx, l.Config.Tables.Snapshot, keys, true)
		if err != nil {
			return nil, err
		}
		here := map[[2]string]bool{}
		for _, it := range items {
			partition, sort := l.KeysOf(it)
			here[[2]string{partition, sort}] = true
		}
		ids = slices.DeleteFunc(ids, func(id aggregate.ID) bool {
			return here[[2]string{l.partitionKey(id), storage.SortKey(id, 0)}]
		})
		if len(ids) == 0 || !retry.Sleep(ctx, wait.NextBackOff()) {
			return ids, ctx.Err()
		}
	}
}
