// Package policies connects the three services: its Watermill handlers react to the events of one
// service with a command to another.
//
//	order created, revised    -> ticket: request the dishes
//	order cancelled           -> ticket: cancel
//	ticket accepted           -> order: approve
//	ticket declined           -> order: reject
//	order approved            -> delivery: schedule
//
// Messages are delivered at least once. So the id of each command is the id of the event that it
// follows from, and the command takes effect once.
//
// A service may refuse a command, for example when a consumer cancels an order while the kitchen
// accepts it. The handler then acks the message: the event that made the service refuse has its own
// policy, which informs the other service. If the aggregate does not exist yet, the handler returns
// an error, and the message is delivered again until the aggregate exists. The command that creates
// it follows from an earlier event.
package policies

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// Service executes the commands of an aggregate. A *repository.Repository implements it.
type Service[S any] interface {
	Execute(ctx context.Context, id string, decide aggregate.Decision[S], options ...repository.Option) (repository.Aggregate[S], error)
}

// Policies send commands to the services.
type Policies struct {
	Orders     Service[order.Order]
	Tickets    Service[ticket.Ticket]
	Deliveries Service[delivery.Delivery]
}

// OnOrder handles messages of orders.
func (p Policies) OnOrder(msg *message.Message) error {
	record, event, err := decode(msg, order.Definition)
	if err != nil {
		return err
	}
	switch e := event.(type) {
	case order.Created:
		return command(msg, p.Tickets, record, ticket.Request(0, dishes(e.Lines)))
	case order.Revised:
		return command(msg, p.Tickets, record, ticket.Request(e.Revision, dishes(e.Lines)))
	case order.Cancelled:
		return command(msg, p.Tickets, record, ticket.Cancel)
	case order.Approved:
		return command(msg, p.Deliveries, record, delivery.Schedule)
	}
	return nil
}

// OnTicket handles messages of tickets.
func (p Policies) OnTicket(msg *message.Message) error {
	record, event, err := decode(msg, ticket.Definition)
	if err != nil {
		return err
	}
	switch e := event.(type) {
	case ticket.Accepted:
		return command(msg, p.Orders, record, order.Approve(e.Revision))
	case ticket.Declined:
		return command(msg, p.Orders, record, order.Reject(e.Reason))
	}
	return nil
}

func decode[S any](msg *message.Message, definition aggregate.Definition[S]) (*journal.Record, aggregate.Event[S], error) {
	record, ok := subscriber.RecordFromContext(msg.Context())
	if !ok {
		return nil, nil, errors.New("policies: the message is not from a subscriber of the journal")
	}
	event, err := definition.Decode(record.EventType, record.Payload)
	return record, event, err
}

// command executes the command that follows from an event, on the aggregate with the same id.
func command[S any](msg *message.Message, to Service[S], from *journal.Record, decide aggregate.Decision[S]) error {
	ctx := aggregate.ContextWithMetadata(msg.Context(), aggregate.Metadata{aggregate.CausationIDKey: from.EventID})
	_, err := to.Execute(ctx, from.Aggregate.Value, decide, repository.WithCommandID(from.EventID))
	if err == nil || answered(err) {
		return nil
	}
	return fmt.Errorf("after %s: %w", from.EventType, err)
}

// answered reports whether an error is a refusal by an existing aggregate.
func answered(err error) bool {
	var o order.Refused
	var t ticket.Refused
	var d delivery.Refused
	switch {
	case errors.As(err, &o):
		return o.Status != ""
	case errors.As(err, &t):
		return t.Status != ""
	case errors.As(err, &d):
		return d.Status != ""
	}
	return false
}

func dishes(lines []order.Line) []string {
	names := make([]string, len(lines))
	for i, line := range lines {
		names[i] = fmt.Sprintf("%d × %s", line.Quantity, line.Name)
	}
	return names
}
