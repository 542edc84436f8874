// Package history is the query side of the example: a view of all orders by consumer, newest first, in a
// DynamoDB table of its own, kept up to date by the events of the orders.
//
// [DAO.Reactions] says what each event changes, and a projection commits that together with its position.
// [DAO.FindOrderHistory] and [DAO.FindOrder] read.
package history

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
)

// Names of the table and of its index.
const (
	DefaultTable = "ftgo-order-history"
	Index        = "ftgo-order-history-by-consumer-id-and-creation-time"
)

// Client is what a DAO needs of a *dynamodb.Client.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
}

// Config configures a [DAO].
type Config struct {
	Table string // default: DefaultTable
	// TokenKey signs page tokens, so that nobody makes one up. Servers that stand in for one
	// another share it. Default: random, so that the tokens of one process are good for that process only.
	TokenKey []byte
}

// DAO reads and writes the order history. It is safe for concurrent use.
type DAO struct {
	client Client
	table  string
	key    []byte
}

// NewDAO makes a DAO. It makes no round trip.
func NewDAO(client Client, config Config) *DAO {
	if config.Table == "" {
		config.Table = DefaultTable
	}
	if len(config.TokenKey) == 0 {
		config.TokenKey = make([]byte, 32)
		_, _ = rand.Read(config.TokenKey) // never fails
	}
	return &DAO{client: client, table: config.Table, key: config.TokenKey}
}

// ErrNotFound says that the history has no such order, or not yet.
var ErrNotFound = errors.New("order not found in the history")

// FindOrder gives an order, strongly consistent. What the history has not been told yet is not there.
// Errors: [ErrNotFound], journal.ErrThrottled.
func (d *DAO) FindOrder(ctx context.Context, orderID string) (Order, error) {
	if n := len(orderID); n == 0 || n > maxKey {
		return Order{}, ErrNotFound
	}
	consistent := true
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.table, Key: key(orderID), ConsistentRead: &consistent})
	if err != nil {
		return Order{}, d.explain("find order "+orderID, err)
	}
	// An event of another service can be here before the order is.
	if _, created := out.Item[attrConsumerID]; !created {
		return Order{}, fmt.Errorf("%w: %s", ErrNotFound, orderID)
	}
	return orderOf(out.Item), nil
}

func (d *DAO) explain(doing string, err error) error {
	return fmt.Errorf("%s: %w", doing, journal.Explain(err, d.table))
}

func key(orderID string) attributes {
	return attributes{attrOrderID: &types.AttributeValueMemberS{Value: orderID}}
}
