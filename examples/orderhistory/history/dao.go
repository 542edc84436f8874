// Package history is the query side of the example: a view of all orders by consumer, newest first,
// in its own DynamoDB table. The events of the orders keep it up to date.
//
// [OrderHistoryDao.EventHandlers] returns the changes for each event, and a projection commits them
// together with its position. [OrderHistoryDao.FindOrderHistory] and [OrderHistoryDao.FindOrder]
// answer queries.
package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/examples/internal/throttle"
)

// Names of the table and of its index.
const (
	DefaultTable = "ftgo-order-history"
	Index        = "ftgo-order-history-by-consumer-id-and-creation-time"
)

// Client is the part of a *dynamodb.Client that an OrderHistoryDao uses.
type Client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
}

// Config configures an [OrderHistoryDao].
type Config struct {
	Table string // default: DefaultTable
	// MaxRead is the maximum number of orders that one query reads, matching or not. Default:
	// DefaultMaxRead.
	MaxRead int
}

// DefaultMaxRead limits the cost of a query: about 250 read units for orders of 1 KB, and a few
// tenths of a second.
const DefaultMaxRead = 2_000

// OrderHistoryDao reads and writes the order history. It is safe for concurrent use.
type OrderHistoryDao struct {
	client Client
	config Config
}

// NewOrderHistoryDao returns a DAO. It makes no request.
func NewOrderHistoryDao(client Client, config Config) *OrderHistoryDao {
	if config.Table == "" {
		config.Table = DefaultTable
	}
	if config.MaxRead == 0 {
		config.MaxRead = DefaultMaxRead
	}
	return &OrderHistoryDao{client, config}
}

// ErrNotFound reports that the history does not have the order, or not yet.
var ErrNotFound = errors.New("order not found in the history")

// FindOrder returns an order, strongly consistent. It shows only events that the projection has
// applied. Errors: [ErrNotFound], journal.ErrThrottled.
func (d *OrderHistoryDao) FindOrder(ctx context.Context, orderID string) (Order, error) {
	if n := len(orderID); n == 0 || n > maxKey {
		return Order{}, ErrNotFound
	}
	consistent := true
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.config.Table, Key: key(orderID), ConsistentRead: &consistent})
	if err != nil {
		return Order{}, d.explain("find order "+orderID, err)
	}
	// An event of another service can arrive before the order is created.
	if _, created := out.Item[attrConsumerID]; !created {
		return Order{}, fmt.Errorf("%w: %s", ErrNotFound, orderID)
	}
	return orderOf(out.Item), nil
}

func (d *OrderHistoryDao) explain(doing string, err error) error {
	return fmt.Errorf("%s in table %q: %w", doing, d.config.Table, throttle.Explain(err))
}

func key(orderID string) attributes {
	return attributes{attrOrderID: &types.AttributeValueMemberS{Value: orderID}}
}
