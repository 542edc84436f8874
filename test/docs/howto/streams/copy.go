// Package streams is the code of docs/howto/migrate-from-streams.md. It moves orders from a table
// of events that an application wrote by hand, and whose stream a Lambda function read.
package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-lambda-go/events"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

const (
	copied   = "copied" // metadata of events that the former table had
	attempts = 20
)

// A Copier copies events of the former table to the journal.
type Copier struct {
	From      Former
	Journal   *journal.Journal
	Publisher message.Publisher
}

// Copy copies the events of an order that the journal lacks. Any number of processes may copy the
// same order at a time.
func (c *Copier) Copy(ctx context.Context, order string) error {
	var err error
	for range attempts {
		var version uint64
		version, err = c.Journal.Version(ctx, aggregate.ID{Type: "order", Value: order})
		if err != nil && !errors.Is(err, journal.ErrNotFound) { // 0 if the journal has none
			return err
		}
		if err = c.copyAfter(ctx, order, version); !errors.Is(err, journal.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("copy order %s: %w", order, err)
}

func (c *Copier) copyAfter(ctx context.Context, order string, version uint64) error {
	for item, err := range c.From.Events(ctx, order, version) {
		if err != nil {
			return err
		}
		if item.Type == sealed {
			return nil
		}
		msg := message.NewMessage(fmt.Sprintf("%s/%d", order, item.Number), item.Data)
		msg.Metadata.Set(publisher.AggregateIDKey, order)
		msg.Metadata.Set(publisher.NameKey, item.Type)
		msg.Metadata.Set(copied, item.At) // the event gets the time of the copy
		publisher.SetExpectedVersion(msg, item.Number-1)
		if err := c.Publisher.Publish("order", msg); err != nil {
			return err
		}
	}
	return nil
}

// CopyAll copies all orders.
func (c *Copier) CopyAll(ctx context.Context) error {
	for order, err := range c.From.Orders(ctx) {
		if err != nil {
			return err
		}
		if err := c.Copy(ctx, order); err != nil {
			return err
		}
	}
	return nil
}

// Handle is a Lambda function that reads the stream of the former table. A record is only a reason
// to copy the order up to its end, so repeated and reordered records do no harm.
func (c *Copier) Handle(ctx context.Context, batch events.DynamoDBEvent) error {
	done := map[string]bool{}
	for _, record := range batch.Records {
		order := record.Change.Keys["order"].String()
		if done[order] {
			continue
		}
		if err := c.Copy(ctx, order); err != nil {
			return err
		}
		done[order] = true
	}
	return nil
}

// Copied reports whether a handler handles an event that the former table had, so that the former
// application has sent its emails.
func Copied(ctx context.Context) bool {
	msg := cqrs.OriginalMessageFromCtx(ctx)
	return msg != nil && msg.Metadata.Get(copied) != ""
}

// A Service executes the commands of orders that are moved.
type Service struct {
	Copier *Copier
	Orders *repository.Repository[shop.Order]
}

// Execute moves an order to the journal, unless it was moved before, and executes a command on it.
func (s *Service) Execute(ctx context.Context, order string, decide aggregate.Decision[shop.Order]) error {
	if err := s.Copier.From.Seal(ctx, order); err != nil {
		return err
	}
	if err := s.Copier.Copy(ctx, order); err != nil {
		return err
	}
	_, err := s.Orders.Execute(ctx, order, decide)
	return err
}

// Differences returns the orders whose events in the journal are not those of the former table.
func (c *Copier) Differences(ctx context.Context) (orders []string, err error) {
	for order, err := range c.From.Orders(ctx) {
		if err != nil {
			return nil, err
		}
		same, err := c.same(ctx, order)
		if err != nil {
			return nil, err
		}
		if !same {
			orders = append(orders, order)
		}
	}
	return orders, nil
}

func (c *Copier) same(ctx context.Context, order string) (bool, error) {
	records := map[uint64]*journal.Record{}
	for record, err := range c.Journal.AllEvents(ctx, aggregate.ID{Type: "order", Value: order}) {
		if errors.Is(err, journal.ErrNotFound) {
			break
		}
		if err != nil {
			return false, err
		}
		records[record.Number] = record
	}
	for item, err := range c.From.Events(ctx, order, 0) {
		if err != nil {
			return false, err
		}
		if item.Type == sealed {
			break
		}
		record := records[item.Number]
		if record == nil || record.EventType != item.Type || string(record.Payload) != string(item.Data) {
			return false, nil
		}
	}
	return true, nil
}
