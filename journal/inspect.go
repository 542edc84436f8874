package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
)

func (j *engine) Inspect(ctx context.Context, id aggregate.ID, each func(*Record)) (inspection, error) {
	if err := id.Validate(); err != nil {
		return inspection{}, err
	}
	var found inspection
	err := j.inspectHead(ctx, id, &found)
	if err == nil {
		err = j.inspectEvents(ctx, id, &found, each)
	}
	if err != nil {
		return inspection{}, fmt.Errorf("inspect %s: %w", id, err)
	}
	return found, nil
}

func (j *engine) inspectHead(ctx context.Context, id aggregate.ID, found *inspection) error {
	table := j.config.Tables.Snapshot
	var state item
	var err error
	if j.config.Layout == Lean { // before the head, which a commit may move
		if state, err = j.getItem(ctx, table, j.stateKey(id)); err != nil {
			return err
		}
	}
	row, err := j.getItem(ctx, table, j.key(id, 0))
	if err != nil {
		return err
	}
	head, err := j.headOf(id, row)
	var corrupt *CorruptItemError
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case errors.As(err, &corrupt):
		found.Corrupt = append(found.Corrupt, corrupt)
		return nil
	case err != nil:
		return err
	}
	found.Head = &head
	snapshot := j.snapshotOf(row)
	if j.config.Layout == Lean {
		snapshot = j.snapshotOf(state)
		if head.DeletedAt.IsZero() {
			head.Snapshot = snapshot
		}
	}
	if snapshot != nil {
		found.SnapshotNumber = snapshot.Number
	}
	return nil
}

func (j *engine) inspectEvents(ctx context.Context, id aggregate.ID, found *inspection, each func(*Record)) error {
	return j.numbered(ctx, j.config.Tables.Journal, id, nil, func(items []numberedItem) error {
		for _, it := range items {
			r, err := j.recordOf(it.item)
			var corrupt *CorruptItemError
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

func (j *engine) Strays(ctx context.Context, aggregateType string) iter.Seq2[*CorruptItemError, error] {
	return func(yield func(*CorruptItemError, error) bool) {
		err := j.journalPages(ctx, aggregateType, func(items []item) error {
			strays, err := j.straysOf(ctx, items)
			if err != nil {
				return err
			}
			for _, stray := range strays {
				if !yield(stray, nil) {
					return errStop
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, fmt.Errorf("look for strays: %w", err))
		}
	}
}

// journalPages returns the journal table with the attributes that straysOf needs.
func (j *engine) journalPages(ctx context.Context, aggregateType string, do func([]item) error) error {
	a, table := j.config.Attributes, j.config.Tables.Journal
	projection := aws.String("#pk, #sk, #aid, #n, #command, #format")
	names := attributeNames("#pk", a.PartitionKey, "#sk", a.SortKey, "#aid", a.AggregateID, "#n", a.SequenceNumber,
		"#command", attrCommandID, "#format", attrFormat)
	if aggregateType == "" {
		pages := dynamodb.NewScanPaginator(j.client, &dynamodb.ScanInput{
			TableName: &table, ProjectionExpression: projection, ExpressionAttributeNames: names,
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return dynamo.Explain(err, table)
			}
			if err := do(page.Items); err != nil {
				return err
			}
		}
		return nil
	}
	for shard := range j.config.Shards {
		pages := dynamodb.NewQueryPaginator(j.client, &dynamodb.QueryInput{
			TableName: &table, ProjectionExpression: projection, ExpressionAttributeNames: names,
			KeyConditionExpression:    aws.String("#pk = :pk"),
			ExpressionAttributeValues: item{":pk": stringValue(storage.ShardKey(aggregateType, shard))},
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return dynamo.Explain(err, table)
			}
			if err := do(page.Items); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *engine) straysOf(ctx context.Context, items []item) (strays []*CorruptItemError, err error) {
	sound := map[aggregate.ID]*CorruptItemError{} // an event of each aggregate, as it is reported if there is no head
	for _, it := range items {
		if it[attrCommandID] != nil || it[attrFormat] != nil {
			continue // the guard of a command, the descriptor
		}
		partition, sort := j.keysOf(it)
		stray := &CorruptItemError{Table: j.config.Tables.Journal, PartitionKey: partition, SortKey: sort}
		id, ok := j.aggregateOf(it)
		number, numbered := uintOf(it[j.config.Attributes.SequenceNumber])
		switch {
		case !ok:
			stray.Reason = "has no " + j.config.Attributes.AggregateID + " that fits its partition"
		case !numbered || number == 0 || sort != storage.SortKey(id, number):
			stray.Reason = "has a sort key that does not fit its aggregate and sequence number"
		case partition != j.partitionKey(id):
			stray.Aggregate, stray.Number, stray.Reason = id, number, "is not in the shard of its aggregate, "+j.partitionKey(id)
		default:
			stray.Aggregate, stray.Number, stray.Reason = id, number, "is an event of an aggregate that has no head"
			sound[id] = stray
			continue
		}
		strays = append(strays, stray)
	}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(sound)), maxKeys) {
		headless, err := j.withoutHead(ctx, ids)
		if err != nil {
			return nil, err
		}
		for _, id := range headless {
			strays = append(strays, sound[id])
		}
	}
	return strays, nil
}

// withoutHead looks several times, for an event can show before its head does.
func (j *engine) withoutHead(ctx context.Context, ids []aggregate.ID) ([]aggregate.ID, error) {
	wait := backoff.WithMaxRetries(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMaxInterval(200*time.Millisecond)), 4)
	for {
		keys := make([]item, len(ids))
		for i, id := range ids {
			keys[i] = j.key(id, 0)
		}
		items, err := j.batchGetKeys(ctx, j.config.Tables.Snapshot, keys)
		if err != nil {
			return nil, err
		}
		here := map[[2]string]bool{}
		for _, it := range items {
			partition, sort := j.keysOf(it)
			here[[2]string{partition, sort}] = true
		}
		ids = slices.DeleteFunc(ids, func(id aggregate.ID) bool {
			return here[[2]string{j.partitionKey(id), storage.SortKey(id, 0)}]
		})
		if len(ids) == 0 || !sleep(ctx, wait.NextBackOff()) {
			return ids, ctx.Err()
		}
	}
}
