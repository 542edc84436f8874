// Package service puts the example together: three services that take commands, the policies by
// which they go on with one another's work, a consumer that tells the order history what has
// happened, and the history that answers queries. Any number of processes may run it on the same
// tables.
package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// DefaultPrefix begins the names of the tables.
const DefaultPrefix = "ftgo-"

// Config configures a [Service].
type Config struct {
	Prefix string         // of table names; default: DefaultPrefix
	Layout journal.Layout // of the tables of events; default: journal.Classic
}

// Service is one process's part of the application. In production each of the three would be a
// program of its own, with a journal of its own or the same.
type Service struct {
	Orders     *repository.Repository[order.Order]
	Tickets    *repository.Repository[ticket.Ticket]
	Deliveries *repository.Repository[delivery.Delivery]
	History    *history.OrderHistoryDao
	Journal    *journal.Journal
	client     *dynamodb.Client
	tables     []string
}

// Open makes the tables where they are missing, and opens them.
func Open(ctx context.Context, client *dynamodb.Client, config Config) (*Service, error) {
	if config.Prefix == "" {
		config.Prefix = DefaultPrefix
	}
	store := journal.Config{
		Tables: journal.Tables{
			Journal: config.Prefix + "journal", Snapshot: config.Prefix + "snapshot", Checkpoint: config.Prefix + "checkpoint",
		},
		Shards: 4, // of about 1,000 write units a second each; fixed once the tables are made
		Layout: config.Layout,
	}
	view := history.Config{Table: config.Prefix + "order-history"}
	s := &Service{
		client:  client,
		History: history.NewOrderHistoryDao(client, view),
		tables:  []string{store.Tables.Journal, store.Tables.Snapshot, store.Tables.Checkpoint, view.Table},
	}
	if err := journal.Create(ctx, client, store); err != nil {
		return nil, err
	}
	if err := s.History.CreateTable(ctx); err != nil {
		return nil, fmt.Errorf("order history: %w", err)
	}
	var err error
	if s.Journal, err = journal.Open(ctx, client, store); err != nil {
		return nil, err
	}
	if s.Orders, err = repository.New(s.Journal, order.Definition, repository.Config{}); err != nil {
		return nil, err
	}
	if s.Tickets, err = repository.New(s.Journal, ticket.Definition, repository.Config{}); err != nil {
		return nil, err
	}
	if s.Deliveries, err = repository.New(s.Journal, delivery.Definition, repository.Config{}); err != nil {
		return nil, err
	}
	return s, nil
}

// WaitShown waits until queries of an order show an event of one of the aggregates, as long as the
// context lasts. Errors: groups.ErrNotApplied, also where it is applied and not shown; those of
// groups.Groups.WaitApplied and history.OrderHistoryDao.AwaitOrder.
func (s *Service) WaitShown(ctx context.Context, id aggregate.ID, version uint64) error {
	if err := groups.New(s.Journal).WaitApplied(ctx, HistoryGroup, id, version); err != nil {
		return err
	}
	_, err := s.History.AwaitOrder(ctx, id, version)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", groups.ErrNotApplied, err)
	}
	return err
}

// Answers reports whether the tables of journal and history can be read. It costs two read units.
func (s *Service) Answers(ctx context.Context) error {
	const nobody = "readiness" // no order has this id, and it would do no harm
	_, err := s.Journal.Version(ctx, aggregate.ID{Type: order.Definition.Type(), Value: nobody})
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return err
	}
	if _, err = s.History.FindOrder(ctx, nobody); errors.Is(err, history.ErrNotFound) {
		return nil
	}
	return err
}

// DropTables deletes the tables and all that is in them.
func (s *Service) DropTables(ctx context.Context) error {
	for _, table := range s.tables {
		if _, err := s.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			return fmt.Errorf("delete table %q: %w", table, err)
		}
	}
	return nil
}
