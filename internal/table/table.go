package table

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// MaxKeys is DynamoDB's limit for one BatchGetItem.
const MaxKeys = 100

// Table makes requests to the tables of a journal. The engine and its layout share it.
type Table struct {
	Client journaltype.Client
	Config *Settings
	Source rows.Source // the client, for items that are read as rows
	quotas *quotas
}

// New returns the requests of a client. If the settings have no clock, New sets one that the dates
// of DynamoDB's replies correct.
func New(client journaltype.Client, config *Settings) *Table {
	_, sdk := client.(*dynamodb.Client)
	client = Bounded(client)
	if config.Now == nil {
		c := &clock{}
		config.Now, client = c.now, timed{client, c}
	}
	return &Table{Client: client, Config: config, Source: rows.Source{Client: client, SDK: sdk}, quotas: newQuotas()}
}

// Now returns the time with the precision in which it is stored, so that writer and readers see the
// same time.
func (t *Table) Now() time.Time {
	return time.UnixMilli(t.Config.MillisOf(t.Config.StoredTime(t.Config.Now().UnixMilli()))).UTC()
}

// UntilShown paces repeated reads of an item that must exist.
func UntilShown() backoff.BackOff {
	return backoff.WithMaxRetries(retry.Pauses(10*time.Millisecond, 200*time.Millisecond, 0), 4)
}

// Patience paces repeated requests, for as long as RetryBudget.
func (t *Table) Patience() *backoff.ExponentialBackOff {
	return retry.Pauses(5*time.Millisecond, time.Second, t.Config.RetryBudget)
}

// GetItem reads an item, strongly consistent. It returns nil if there is none.
func (t *Table) GetItem(ctx context.Context, name string, key Item) (Item, error) {
	out, err := t.Client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &name,
		Key:            key,
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, dynamo.Explain(err, name)
	}
	return out.Item, nil
}

// BatchGetKeys reads those of at most MaxKeys items that exist, in any order. The layouts use it
// for few items.
func (t *Table) BatchGetKeys(ctx context.Context, name string, keys []Item, consistent bool) ([]Item, error) {
	return batchGetRows(ctx, t, name, keys, consistent, rows.Row.Item)
}

// batchGetRows reads those of at most MaxKeys items that exist, and calls of for each.
func batchGetRows[T any](ctx context.Context, t *Table, name string, keys []Item, consistent bool, of func(rows.Row) T) (items []T, err error) {
	wait := t.Patience()
	for len(keys) > 0 {
		sent := time.Now()
		found, unprocessed, err := rows.BatchGet(ctx, t.Source, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{name: {Keys: keys, ConsistentRead: &consistent}},
		}, of)
		if err != nil {
			return nil, dynamo.Explain(err, name)
		}
		items = append(items, found...)
		keys = unprocessed[name].Keys
		if len(found) > 0 {
			wait.Reset() // a full reply of 16 MB is progress, not throttling
			continue
		}
		if len(keys) > 0 && !t.again(ctx, wait, sent) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%w: table %q left %d keys unprocessed for %s", journaltype.ErrThrottled, name, len(keys), t.Config.RetryBudget)
		}
	}
	return items, nil
}

// ReadsAtOnce is the number of requests that GetMany makes at the same time.
const ReadsAtOnce = 4

// GetMany calls batchGetRows for any number of items. It calls of in several goroutines.
func GetMany[T any](ctx context.Context, t *Table, name string, keys []Item, consistent bool, of func(rows.Row) T) ([]T, error) {
	chunks := slices.Collect(slices.Chunk(keys, MaxKeys))
	found := make([][]T, len(chunks))
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(ReadsAtOnce)
	for i, some := range chunks {
		reads.Go(func() (err error) {
			found[i], err = batchGetRows(ctx, t, name, some, consistent, of)
			return err
		})
	}
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// TransactGet reads items in a transaction, so it sees either all of a commit or nothing of it. It
// leaves out items that do not exist.
func (t *Table) TransactGet(ctx context.Context, name string, keys []Item) ([]Item, error) {
	return t.TransactGetUnless(ctx, name, keys, func(context.Context, int) error { return nil })
}

// TransactGetUnless does the same as TransactGet, but ends if moved returns an error. Before it
// sends the request again, it calls moved for each key whose item met another transaction. Without
// moved, it could repeat endlessly, because there may always be another transaction.
func (t *Table) TransactGetUnless(
	ctx context.Context, name string, keys []Item, moved func(ctx context.Context, key int) error,
) (items []Item, err error) {
	input := &dynamodb.TransactGetItemsInput{}
	for _, key := range keys {
		input.TransactItems = append(input.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: &name, Key: key}})
	}
	wait := t.Patience()
	for {
		sent := time.Now()
		out, err := t.Client.TransactGetItems(ctx, input)
		if err == nil {
			for _, r := range out.Responses {
				if r.Item != nil {
					items = append(items, r.Item)
				}
			}
			return items, nil
		}
		var canceled *types.TransactionCanceledException
		if !errors.As(err, &canceled) || slices.ContainsFunc(canceled.CancellationReasons, IsFinal) || !t.again(ctx, wait, sent) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, dynamo.Explain(err, name)
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

// PutNew returns an action that never overwrites an item. A stale writer of the event-store-adapter
// family can overwrite one.
func (t *Table) PutNew(name string, it Item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName:                           &name,
		Item:                                it,
		ConditionExpression:                 aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames:            AttributeNames("#pk", t.Config.Attributes.PartitionKey),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// Alone converts a Put of a transaction to a request of its own.
func Alone(action types.TransactWriteItem) *dynamodb.PutItemInput {
	put := action.Put
	return &dynamodb.PutItemInput{
		TableName: put.TableName, Item: put.Item, ConditionExpression: put.ConditionExpression,
		ExpressionAttributeNames: put.ExpressionAttributeNames, ReturnValuesOnConditionCheckFailure: put.ReturnValuesOnConditionCheckFailure,
	}
}

// PutItem sends the request again while a transaction on the item is under way. The SDK does not.
func (t *Table) PutItem(ctx context.Context, in *dynamodb.PutItemInput) error {
	return t.WhileUnderWay(ctx, func() error {
		_, err := t.Client.PutItem(ctx, in)
		return err
	})
}

// UpdateItem repeats the request like PutItem.
func (t *Table) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput) error {
	return t.WhileUnderWay(ctx, func() error {
		_, err := t.Client.UpdateItem(ctx, in)
		return err
	})
}

// Transact repeats the request like PutItem.
func (t *Table) Transact(ctx context.Context, actions ...types.TransactWriteItem) error {
	return t.WhileUnderWay(ctx, func() error {
		_, err := t.Client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions})
		return err
	})
}

// RefusedItem returns the item for which the condition of an action was false. Action is the index
// in a transaction, and 0 for a request with a single action.
func RefusedItem(err error, action int) (it Item, refused bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) && action == 0 {
		return failed.Item, true
	}
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && action < len(canceled.CancellationReasons) && ConditionFailed(canceled.CancellationReasons[action]) {
		return canceled.CancellationReasons[action].Item, true
	}
	return nil, false
}

// WhileUnderWay repeats a request while a transaction on one of its items is under way.
func (t *Table) WhileUnderWay(ctx context.Context, send func() error) error {
	wait := t.Patience()
	for {
		sent := time.Now()
		err := send()
		if !dynamo.IsContended(err) {
			return err
		}
		if !t.again(ctx, wait, sent) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// Date returns the dates of a commit. Call it after everything that may take time, such as a read
// or an encoding that waits for a key service: an event must become visible soon after its date.
func (t *Table) Date() Dates { return Dates{time.Now(), t.Now()} }

// Backwards reads up to limit entries of a partition of the tail, beginning with the last one.
func Backwards[T any](ctx context.Context, t *Table, input *dynamodb.QueryInput, limit int, of func(rows.Row) T) (entries []T, err error) {
	input.ScanIndexForward = aws.Bool(false)
	for {
		input.Limit = aws.Int32(int32(min(limit-len(entries), math.MaxInt32)))
		page, err := rows.Query(ctx, t.Source, input, of)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page.Items...)
		if input.ExclusiveStartKey = page.LastKey; page.LastKey == nil || len(entries) >= limit {
			return entries, nil
		}
	}
}
