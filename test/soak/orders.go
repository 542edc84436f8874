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

// order is a command with an id. Any writer may execute it again, and it takes effect once. It also
// puts a row into the outbox, a table that the library does not know.
type order struct {
	id      string
	command uint64
	size    int
	seed    uint64

	done    bool // it was acknowledged
	unknown *journal.OutcomeUnknownError
	count   int // number of its events then
	most    int // largest number of events of a run
}

// orders holds the commands that may be repeated. It is safe for concurrent use.
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
	w.executeOrder("order", o)
}

// repeat executes an order again, as a client does that does not know it, or does not know its
// outcome.
func (w *writer) repeat() {
	if o := w.orders.take(w.random.IntN); o != nil {
		w.executeOrder("repeat", o)
	}
}

func (w *writer) executeOrder(how string, o *order) {
	before := w.truth.outcome(o.command)
	a, d, err := w.decide(how, o, repository.WithCommandID(fmt.Sprint("order-", o.command)), outboxRow(o.command))
	var unknown *journal.OutcomeUnknownError
	switch {
	case err == nil && a.Repeated:
		w.truth.see("repeated")
		switch {
		case o.done:
		case o.unknown == nil && d.runs <= 1 && !w.removes:
			w.truth.report(Wrong, "%s: command %d on thing %s counts as repeated, and was never written", how, o.command, o.id)
		case o.unknown != nil && d.runs <= 1:
			w.truth.record(o.command, outcome{sure: o.count, first: o.unknown.First})
		// By one of several runs, or its events may have been removed since.
		default:
			w.truth.record(o.command, outcome{maybe: max(o.most, d.most)})
		}
		o.done = true
	case err == nil:
		if o.done {
			w.truth.report(Wrong, "%s: command %d on thing %s was written before", how, o.command, o.id)
		}
		o.done = true
	case errors.As(err, &unknown):
		// A second commit must not be there, whatever its outcome.
		if o.done {
			w.truth.record(o.command, before)
			break
		}
		if o.unknown != nil || d.runs > 1 {
			// There are several commits, of which at most one is written. It is unknown which.
			w.truth.record(o.command, outcome{maybe: max(o.most, d.most)})
			return
		}
		o.unknown, o.count, o.most = unknown, d.count, d.most
	case o.done || o.unknown != nil:
		// This call wrote nothing. The call before may have written.
		w.truth.record(o.command, before)
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
	return repository.WithWrites(func(repository.Commit) ([]types.TransactWriteItem, error) { return []types.TransactWriteItem{row}, nil })
}

// inOutbox returns the commands that have a row in the outbox.
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
