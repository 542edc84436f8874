package publisher_test

import (
	"context"
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/journal"
)

// wire is the way to the database, where a test can count and interfere.
type wire struct {
	journal.Client

	mu           sync.Mutex
	transactions []int // events in each request
	reads        int
	underWay     int
	peak         int
	onWrite      func(ctx context.Context, n int) error // before transaction n, from 1; an error is the reply
	onReply      func(n int) error                      // after it was executed; an error is the reply
	onRead       func() error
}

var errLostReply = errors.New("connection reset by peer")

func (w *wire) set(change func(w *wire)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

func (w *wire) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	w.mu.Lock()
	w.transactions = append(w.transactions, len(in.TransactItems)-1)
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
	out, err := w.Client.TransactWriteItems(ctx, in, options...)
	if err == nil && onReply != nil {
		err = onReply(n)
	}
	return out, err
}

func (w *wire) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	w.mu.Lock()
	w.reads++
	onRead := w.onRead
	w.mu.Unlock()
	if onRead != nil {
		if err := onRead(); err != nil {
			return nil, err
		}
	}
	return w.Client.GetItem(ctx, in, options...)
}

// sent returns how many events each transaction had.
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

// hold stops transactions before they reach the database. arrived tells of each; release lets one
// pass.
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
