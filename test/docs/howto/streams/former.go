package streams

import (
	"context"
	"errors"
	"iter"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// sealed is the type of the last event of an order in the former table, after which the journal
// keeps the order.
const sealed = "sealed"

// Former is the table of the former application. Its key is order and number.
type Former struct {
	Client *dynamodb.Client
	Table  string
}

// An Item is an event in the former table.
type Item struct {
	Number   uint64
	Type, At string
	Data     []byte
}

// Append appends an event after the given number of events. All releases append by this condition.
func (f Former) Append(ctx context.Context, order string, after uint64, event Item) error {
	_, err := f.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &f.Table, ConditionExpression: aws.String("attribute_not_exists(#n)"),
		ExpressionAttributeNames: map[string]string{"#n": "number"},
		Item: map[string]types.AttributeValue{
			"order": text(order), "number": number(after + 1), "type": text(event.Type),
			"at": text(event.At), "data": &types.AttributeValueMemberB{Value: event.Data},
		},
	})
	return err
}

// Last returns the last event of an order. Its number is 0 if there is none.
func (f Former) Last(ctx context.Context, order string) (last Item, err error) {
	for item, err := range f.query(ctx, order, 0, false) {
		return item, err
	}
	return Item{}, nil
}

// Seal ends an order in the former table: no process can append to it any more.
func (f Former) Seal(ctx context.Context, order string) error {
	var conflict *types.ConditionalCheckFailedException
	for range attempts {
		last, err := f.Last(ctx, order)
		if err != nil || last.Type == sealed {
			return err
		}
		if err := f.Append(ctx, order, last.Number, Item{Type: sealed, Data: []byte{}}); !errors.As(err, &conflict) {
			return err
		}
	}
	return conflict
}

// Events returns the events of an order with numbers above after.
func (f Former) Events(ctx context.Context, order string, after uint64) iter.Seq2[Item, error] {
	return f.query(ctx, order, after, true)
}

func (f Former) query(ctx context.Context, order string, after uint64, forward bool) iter.Seq2[Item, error] {
	pages := dynamodb.NewQueryPaginator(f.Client, &dynamodb.QueryInput{
		TableName: &f.Table, ConsistentRead: aws.Bool(true), ScanIndexForward: &forward,
		KeyConditionExpression:    aws.String("#o = :o AND #n > :n"),
		ExpressionAttributeNames:  map[string]string{"#o": "order", "#n": "number"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":o": text(order), ":n": number(after)},
	})
	return func(yield func(Item, error) bool) {
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, values := range page.Items {
				if !yield(item(values)) {
					return
				}
			}
		}
	}
}

// Orders returns the ids of all orders.
func (f Former) Orders(ctx context.Context) iter.Seq2[string, error] {
	pages := dynamodb.NewScanPaginator(f.Client, &dynamodb.ScanInput{
		TableName: &f.Table, FilterExpression: aws.String("#n = :one"),
		ExpressionAttributeNames:  map[string]string{"#n": "number"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":one": number(1)},
	})
	return func(yield func(string, error) bool) {
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield("", err)
				return
			}
			for _, values := range page.Items {
				order, _ := values["order"].(*types.AttributeValueMemberS)
				if order != nil && !yield(order.Value, nil) {
					return
				}
			}
		}
	}
}

func item(values map[string]types.AttributeValue) (Item, error) {
	n, okN := values["number"].(*types.AttributeValueMemberN)
	kind, okT := values["type"].(*types.AttributeValueMemberS)
	at, okA := values["at"].(*types.AttributeValueMemberS)
	data, okD := values["data"].(*types.AttributeValueMemberB)
	if !okN || !okT || !okA || !okD {
		return Item{}, errors.New("an item of the former table is no event")
	}
	parsed, err := strconv.ParseUint(n.Value, 10, 64)
	return Item{Number: parsed, Type: kind.Value, At: at.Value, Data: data.Value}, err
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}
