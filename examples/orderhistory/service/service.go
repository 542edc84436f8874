// Package service wires the example: the three services that execute commands, the policies that
// connect them, a projection that writes the order history, and the history that answers queries.
// Any number of processes may run it on the same tables.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/policies"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// DefaultPrefix is the prefix of the names of the tables.
const DefaultPrefix = "ftgo-"

// Names of the consumer groups. Each has its own positions in the journal. A group with another
// name would be a new group, and start at the first event unless the config says otherwise.
const (
	HistoryGroup  = "order-history"
	PoliciesGroup = "policies"
)

// Service is one process of the application. In production each of the three services could be its
// own program, with its own journal or the same.
type Service struct {
	*millrace.App
	Orders     *repository.Repository[order.Order]
	Tickets    *repository.Repository[ticket.Ticket]
	Deliveries *repository.Repository[delivery.Delivery]
	History    *history.OrderHistoryDao
	client     *dynamodb.Client
	tables     []string
}

// Open creates the tables if they are missing, and opens them. The default of Prefix in config is
// [DefaultPrefix].
func Open(ctx context.Context, client *dynamodb.Client, config millrace.Config) (*Service, error) {
	if config.Prefix == "" {
		config.Prefix = DefaultPrefix
	}
	// Each shard takes about 1,000 write units a second. The number of shards never changes.
	config.Journal.Shards, config.Journal.Layout = 4, cmp.Or(config.Journal.Layout, journal.Packed)
	app, err := millrace.Open(ctx, client, config)
	if err != nil {
		return nil, err
	}
	view, tables := config.Prefix+"order-history", app.Journal().Config().Tables
	s := &Service{
		App: app, client: client,
		History: history.NewOrderHistoryDao(client, history.Config{Table: view}),
		tables:  []string{tables.Journal, tables.Snapshot, tables.Checkpoint, view},
	}
	if err := s.History.CreateTable(ctx); err != nil {
		return nil, fmt.Errorf("order history: %w", err)
	}
	var errs [3]error
	s.Orders, errs[0] = millrace.Repository(app, order.Definition, repository.Config{})
	s.Tickets, errs[1] = millrace.Repository(app, ticket.Definition, repository.Config{})
	s.Deliveries, errs[2] = millrace.Repository(app, delivery.Definition, repository.Config{})
	return s, errors.Join(errs[:]...)
}

// Consume makes the service handle events while it runs: the policies react to them, and the
// projection updates the history. Processes that call it share the logical shards of the journal.
func (s *Service) Consume() error {
	if _, err := s.Project(millrace.Group{Name: HistoryGroup, Topics: Topics()}, s.History.EventHandlers()...); err != nil {
		return err
	}
	react := policies.Policies{Orders: s.Orders, Tickets: s.Tickets, Deliveries: s.Deliveries}
	of := map[string]message.NoPublishHandlerFunc{order.Definition.Type(): react.OnOrder, ticket.Definition.Type(): react.OnTicket}
	return s.Handle(millrace.Group{Name: PoliciesGroup, Topics: []string{order.Definition.Type(), ticket.Definition.Type()}},
		func(msg *message.Message) error { return of[message.SubscribeTopicFromCtx(msg.Context())](msg) })
}

// Topics returns the topics of the three services.
func Topics() []string {
	return []string{order.Definition.Type(), ticket.Definition.Type(), delivery.Definition.Type()}
}

// Stats returns the counts of this process for the history.
func (s *Service) Stats() (sub subscriber.Stats, view projection.Stats) {
	for name, part := range s.Components() {
		switch part := part.(type) {
		case *subscriber.Subscriber:
			if name == HistoryGroup {
				sub = part.Stats()
			}
		case *projection.Projection:
			view = part.Stats()
		}
	}
	return sub, view
}

// WaitShown waits until queries of an order show an event of one of the aggregates, or until ctx
// ends. Errors: groups.ErrNotApplied, also if the event is applied and not shown yet; those of
// groups.Groups.WaitApplied and history.OrderHistoryDao.AwaitOrder.
func (s *Service) WaitShown(ctx context.Context, id aggregate.ID, version uint64) error {
	if err := s.Groups().WaitApplied(ctx, HistoryGroup, id, version); err != nil {
		return err
	}
	_, err := s.History.AwaitOrder(ctx, id, version)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %w", groups.ErrNotApplied, err)
	}
	return err
}

// Answers returns nil if the service runs and can read the journal and the history.
func (s *Service) Answers(ctx context.Context) error {
	if err := s.Ready(ctx); err != nil {
		return err
	}
	_, err := s.History.FindOrder(ctx, "readiness") // no order has this id
	if errors.Is(err, history.ErrNotFound) {
		return nil
	}
	return err
}

// DropTables deletes the tables with their contents.
func (s *Service) DropTables(ctx context.Context) error {
	for _, table := range s.tables {
		if _, err := s.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
			return fmt.Errorf("delete table %q: %w", table, err)
		}
	}
	return nil
}
