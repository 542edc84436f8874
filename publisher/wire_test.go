package publisher_test

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
)

// wire is a client of the database. A test can count its requests, and make them fail.
type wire struct {
	journal.Client

	mu           sync.Mutex
	transactions []int // number of events in each request that writes
	reads        int
	underWay     int
	peak         int
	// onWrite is called before transaction n, from 1, and onReply after it. Their errors are
	// replies.
	onWrite func(ctx context.Context, n int) error
	onReply func(n int) error
	onRead  func() error
}

var errLostReply = errors.New("connection reset by peer")

func (w *wire) set(change func(w *wire)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

func (w *wire) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	events := len(in.TransactItems) - 1 // the head
	if in.TransactItems[0].Put != nil && in.TransactItems[0].Put.Item[packedCount] != nil {
		events = 0
		for _, w := range in.TransactItems {
			events += eventsOf(w.Put.Item)
		}
	}
	return write(ctx, w, events, func() (*dynamodb.TransactWriteItemsOutput, error) {
		return w.Client.TransactWriteItems(ctx, in, options...)
	})
}

// PutItem intercepts the request with which the packed layout writes most commits.
func (w *wire) PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return write(ctx, w, eventsOf(in.Item), func() (*dynamodb.PutItemOutput, error) {
		return w.Client.PutItem(ctx, in, options...)
	})
}

// packedCount is the attribute of the packed layout that counts the events of an item.
const packedCount = "n"

func eventsOf(item map[string]types.AttributeValue) int {
	if n, ok := item[packedCount].(*types.AttributeValueMemberN); ok {
		count, _ := strconv.Atoi(n.Value)
		return count
	}
	return 0
}

func write[Output any](ctx context.Context, w *wire, events int, send func() (*Output, error)) (*Output, error) {
	w.mu.Lock()
	w.transactions = append(w.transactions, events)
	n := len(w.transactions)
	w.underWay++
	w.peak = max(w.peak, w.underWay)
	onWrite, onReply := w.onWrite, w.onReply
	w.mu.Unlock()
	defer w.set(func(w *wire) { w.underWay-- })

	if onWrite != nil {
		if err := onWrite(ctx, n); err != nil {
			return nil, err
		}
	}
	out, err := send()
	if err == nil && onReply != nil {
		err = onReply(n)
	}
	return out, err
}

func (w *wire) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := w.read(); err != nil {
		return nil, err
	}
	return w.Client.GetItem(ctx, in, options...)
}

// Query intercepts the request with which the packed layout reads a version.
func (w *wire) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if err := w.read(); err != nil {
		return nil, err
	}
	return w.Client.Query(ctx, in, options...)
}

func (w *wire) read() error {
	w.mu.Lock()
	w.reads++
	onRead := w.onRead
	w.mu.Unlock()
	if onRead == nil {
		return nil
	}
	return onRead()
}

// sent returns the number of events of each transaction.
func (w *wire) sent() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]int(nil), w.transactions...)
}

func (w *wire) readCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads
}

// hold stops transactions before they reach the database. arrived receives a value for each
// transaction, and release lets one pass.
func (w *wire) hold() (arrived <-chan struct{}, release func()) {
	in, out := make(chan struct{}, 1_000), make(chan struct{}, 1_000)
	w.set(func(w *wire) {
		w.onWrite = func(ctx context.Context, _ int) error {
			in <- struct{}{}
			select {
			case <-out:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	return in, func() { out <- struct{}{} }
}
