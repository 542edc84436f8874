package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/rows"
)

// maxKeys is DynamoDB's limit for one BatchGetItem.
const maxKeys = 100

// store is shared by the engine and its layout. It has the settings, and requests for any table.
type store struct {
	client Client
	config *tableSettings
	source rows.Source // the client, for items that are read as rows
}

// now returns the time with the precision in which it is stored, so that writer and readers see the
// same time.
func (s *store) now() time.Time {
	return time.UnixMilli(s.config.millisOf(s.config.storedTime(s.config.Now().UnixMilli()))).UTC()
}

// untilShown paces repeated reads of an item that must exist.
func untilShown() backoff.BackOff {
	return backoff.WithMaxRetries(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond), backoff.WithMaxInterval(200*time.Millisecond)), 4)
}

// patience paces repeated requests, for as long as RetryBudget.
func (s *store) patience() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(s.config.RetryBudget))
}

func (s *store) getItem(ctx context.Context, table string, key item) (item, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &table,
		Key:            key,
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, dynamo.Explain(err, table)
	}
	return out.Item, nil
}

// batchGetKeys reads those of at most maxKeys items that exist, in any order. The layouts use it
// for few items.
func (s *store) batchGetKeys(ctx context.Context, table string, keys []item, consistent bool) ([]item, error) {
	return batchGetRows(ctx, s, table, keys, consistent, rows.Row.Item)
}

// batchGetRows reads those of at most maxKeys items that exist, and calls of for each.
func batchGetRows[T any](ctx context.Context, s *store, table string, keys []item, consistent bool, of func(rows.Row) T) (items []T, err error) {
	wait := s.patience()
	for len(keys) > 0 {
		found, unprocessed, err := rows.BatchGet(ctx, s.source, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys, ConsistentRead: &consistent}},
		}, of)
		if err != nil {
			return nil, dynamo.Explain(err, table)
		}
		items = append(items, found...)
		keys = unprocessed[table].Keys
		if len(found) > 0 {
			wait.Reset() // a full reply of 16 MB is progress, not throttling
			continue
		}
		if len(keys) > 0 && !sleep(ctx, wait.NextBackOff()) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%w: table %q left %d keys unprocessed for %s", ErrThrottled, table, len(keys), s.config.RetryBudget)
		}
	}
	return items, nil
}

// readsAtOnce is the number of requests that getMany makes at the same time.
const readsAtOnce = 4

// getMany calls batchGetRows for any number of items. It calls of in several goroutines.
func getMany[T any](ctx context.Context, s *store, table string, keys []item, consistent bool, of func(rows.Row) T) ([]T, error) {
	chunks := slices.Collect(slices.Chunk(keys, maxKeys))
	found := make([][]T, len(chunks))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(readsAtOnce)
	for i, some := range chunks {
		reads.Go(func() (err error) {
			found[i], err = batchGetRows(ctx, s, table, some, consistent, of)
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// transactGet reads items in a transaction, so it sees either all of a commit or nothing of it. It
// leaves out items that do not exist.
func (s *store) transactGet(ctx context.Context, table string, keys []item) ([]item, error) {
	return s.transactGetUnless(ctx, table, keys, func(context.Context, int) error { return nil })
}

// transactGetUnless does the same as transactGet, but ends if moved returns an error. Before it
// sends the request again, it calls moved for each key whose item met another transaction. Without
// moved, it could repeat endlessly, because there may always be another transaction.
func (s *store) transactGetUnless(
	ctx context.Context, table string, keys []item, moved func(ctx context.Context, key int) error,
) (items []item, err error) {
	input := &dynamodb.TransactGetItemsInput{}
	for _, key := range keys {
		input.TransactItems = append(input.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: &table, Key: key}})
	}
	wait := s.patience()
	for {
		out, err := s.client.TransactGetItems(ctx, input)
		if err == nil {
			for _, r := range out.Responses {
				if r.Item != nil {
					items = append(items, r.Item)
				}
			}
			return items, nil
		}
		var canceled *types.TransactionCanceledException
		if !errors.As(err, &canceled) || slices.ContainsFunc(canceled.CancellationReasons, isFinal) || !sleep(ctx, wait.NextBackOff()) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, dynamo.Explain(err, table)
		}
		for i, reason := range canceled.CancellationReasons {
			if i < len(keys) && isUnderWay(reason) {
				if err := moved(ctx, i); err != nil {
					return nil, err
				}
			}
		}
	}
}

// putNew returns an action that never overwrites an item. A stale writer of the event-store-adapter
// family can overwrite one.
func (s *store) putNew(table string, it item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName:                           &table,
		Item:                                it,
		ConditionExpression:                 aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames:            attributeNames("#pk", s.config.Attributes.PartitionKey),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// alone converts a Put of a transaction to a request of its own.
func alone(action types.TransactWriteItem) *dynamodb.PutItemInput {
	put := action.Put
	return &dynamodb.PutItemInput{
		TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
		ExpressionAttributeNames: put.ExpressionAttributeNames, ReturnValuesOnConditionCheckFailure: put.ReturnValuesOnConditionCheckFailure,
	}
}

// putItem sends the request again while a transaction on the item is under way. The SDK does not.
func (s *store) putItem(ctx context.Context, in *dynamodb.PutItemInput) error {
	return s.whileUnderWay(ctx, func() error {
		_, err := s.client.PutItem(ctx, in)
		return err
	})
}

// updateItem repeats the request like putItem.
func (s *store) updateItem(ctx context.Context, in *dynamodb.UpdateItemInput) error {
	return s.whileUnderWay(ctx, func() error {
		_, err := s.client.UpdateItem(ctx, in)
		return err
	})
}

// transact repeats the request like putItem.
func (s *store) transact(ctx context.Context, actions ...types.TransactWriteItem) error {
	return s.whileUnderWay(ctx, func() error {
		_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions})
		return err
	})
}

// refusedItem returns the item for which the condition of an action was false. Action is the index
// in a transaction, and 0 for a request with a single action.
func refusedItem(err error, action int) (it item, refused bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) && action == 0 {
		return failed.Item, true
	}
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && action < len(canceled.CancellationReasons) && conditionFailed(canceled.CancellationReasons[action]) {
		return canceled.CancellationReasons[action].Item, true
	}
	return nil, false
}

func (s *store) whileUnderWay(ctx context.Context, send func() error) error {
	wait := s.patience()
	for {
		err := send()
		if !dynamo.IsContended(err) {
			return err
		}
		if !sleep(ctx, wait.NextBackOff()) {
			return errors.Join(ctx.Err(), err)
		}
	}
}
