package soak

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// order is a command with an id, which may be executed again by any writer and takes effect once.
// It also puts a row into the outbox, a table that the library does not know.
type order struct {
	id      string
	command uint64
	size    int
	seed    uint64

	done    bool // it was acknowledged
	unknown *journal.OutcomeUnknownError
	count   int // how many events it had then
	most    int // the most that a run of it had
}

// orders are those that may be repeated. It is safe for concurrent use.
type orders struct {
	mu   sync.Mutex
	list []*order
}

func (o *orders) put(one *order) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, one)
	if len(o.list) > 20 {
		o.list = o.list[1:]
	}
}

func (o *orders) take(pick func(n int) int) *order {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.list) == 0 {
		return nil
	}
	i := pick(len(o.list))
	one := o.list[i]
	o.list = append(o.list[:i:i], o.list[i+1:]...)
	return one
}

func (w *writer) order() {
	id := w.thing(w.random)
	o := &order{id: id, command: w.truth.command(id), size: w.size(), seed: w.random.Uint64()}
	w.truth.order(o.command)
	w.carryOut("order", o)
}

// repeat executes an order again, as one does who has not heard of it or does not know what came of
// it.
func (w *writer) repeat() {
	if o := w.orders.take(w.random.IntN); o != nil {
		w.carryOut("repeat", o)
	}
}

func (w *writer) carryOut(how string, o *order) {
	before := w.truth.outcome(o.command)
	a, d, err := w.decide(how, o, repository.CommandID(fmt.Sprint("order-", o.command)), outboxRow(o.command))
	var unknown *journal.OutcomeUnknownError
	switch {
	case err == nil && a.Repeated:
		w.truth.see("repeated")
		switch {
		case o.done:
		case o.unknown == nil && d.runs <= 1 && !w.removes && (d.runs == 0 || w.Layout != journal.Packed):
			// In the packed layout a faulty read of the state after the call's own commit may have
			// it count as repeated, since that state takes several requests.
			w.truth.report(Wrong, "%s: command %d on thing %s counts as repeated, and was never written", how, o.command, o.id)
		case o.unknown != nil && d.runs <= 1:
			w.truth.settle(o.command, outcome{sure: o.count, first: o.unknown.First})
		default: // by one of several runs, or its events may have been removed since
			w.truth.settle(o.command, outcome{maybe: max(o.most, d.most)})
		}
		o.done = true
	case err == nil:
		if o.done {
			w.truth.report(Wrong, "%s: command %d on thing %s was written before", how, o.command, o.id)
		}
		o.done = true
	case errors.As(err, &unknown):
		if o.done { // nothing of a second commit may be there, whatever its outcome
			w.truth.settle(o.command, before)
			break
		}
		if o.unknown != nil || d.runs > 1 {
			// One of several commits, of which each may be written; which one is not known.
			w.truth.settle(o.command, outcome{maybe: max(o.most, d.most)})
			return
		}
		o.unknown, o.count, o.most = unknown, d.count, d.most
	case o.done || o.unknown != nil:
		w.truth.settle(o.command, before) // this call wrote nothing; the one before may have
	}
	w.orders.put(o)
}

const outbox = "outbox"

func createOutbox(ctx context.Context, client *dynamodb.Client) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            aws.String(outbox),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("command"), AttributeType: types.ScalarAttributeTypeN}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("command"), KeyType: types.KeyTypeHash}},
	})
	return err
}

func outboxRow(command uint64) repository.Option {
	row := types.TransactWriteItem{Put: &types.Put{
		TableName:           aws.String(outbox),
		Item:                map[string]types.AttributeValue{"command": &types.AttributeValueMemberN{Value: strconv.FormatUint(command, 10)}},
		ConditionExpression: aws.String("attribute_not_exists(command)"),
	}}
	return repository.Writes(func(repository.Commit) ([]types.TransactWriteItem, error) { return []types.TransactWriteItem{row}, nil })
}

// inOutbox are the commands whose rows are there.
func (w *running) inOutbox(ctx context.Context) (map[uint64]bool, error) {
	there := map[uint64]bool{}
	pages := dynamodb.NewScanPaginator(w.Client, &dynamodb.ScanInput{TableName: aws.String(outbox), ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, it := range page.Items {
			there[numeric(it["command"])] = true
		}
	}
	return there, nil
}
