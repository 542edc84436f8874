// Package history is the query side of the example: a view of all orders by consumer, newest first,
// in its own DynamoDB table. The events of the orders keep it up to date.
//
// [OrderHistoryDao.EventHandlers] returns the changes for each event, and a projection commits them
// together with its position. [OrderHistoryDao.FindOrderHistory] and [OrderHistoryDao.FindOrder]
// answer queries.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
)

// Names of the table and of its index.
const (
	DefaultTable = "ftgo-order-history"
	Index        = "ftgo-order-history-by-consumer-id-and-creation-time"
)

// Config configures an [OrderHistoryDao].
type Config struct {
	Table string // default: DefaultTable
	// MaxRead is the maximum number of orders that one query reads, matching or not. Default: that
	// of projection.Reader.
	MaxRead int
}

// OrderHistoryDao reads and writes the order history. It is safe for concurrent use.
type OrderHistoryDao struct {
	client journal.Client
	orders projection.Reader[Order]
}

// NewOrderHistoryDao returns a DAO. It makes no request.
func NewOrderHistoryDao(client journal.Client, config Config) *OrderHistoryDao {
	table := projection.Table{
		Name: cmp.Or(config.Table, DefaultTable), PartitionKey: attrOrderID,
		Indexes: []projection.Index{{Name: Index, PartitionKey: attrConsumerID, SortKey: attrCreationTime, SortType: types.ScalarAttributeTypeN}},
	}
	return &OrderHistoryDao{client, projection.Reader[Order]{Client: client, Table: table, Decode: orderOf, MaxRead: config.MaxRead}}
}

// CreateTable creates the table and its index if they are missing, and waits until they are active.
// It may be called again, and by several processes at once.
func (d *OrderHistoryDao) CreateTable(ctx context.Context) error {
	return projection.CreateTable(ctx, d.client, d.orders.Table)
}

// ErrNotFound reports that the history does not have the order, or not yet.
var ErrNotFound = errors.New("order not found in the history")

// FindOrder returns an order, strongly consistent. It shows only events that the projection has
// applied. Errors: [ErrNotFound], journal.ErrThrottled.
func (d *OrderHistoryDao) FindOrder(ctx context.Context, orderID string) (Order, error) {
	o, found, err := d.orders.Get(ctx, orderID)
	// An event of another service can arrive before the order is created.
	if err == nil && (!found || o.ConsumerID == "") {
		err = ErrNotFound
	}
	if err != nil {
		return Order{}, fmt.Errorf("find order %q: %w", orderID, err)
	}
	return o, nil
}
