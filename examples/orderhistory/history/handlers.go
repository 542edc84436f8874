package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
)

// EventHandlers returns the reactions to the events of the three services. Each event leads to one
// idempotent update of one item. So an event that is repeated or late never sets an attribute back
// to an earlier value. Events of different services arrive in any order, so each service has its
// own attributes. An event of a ticket or a delivery can arrive before its order is created. Its
// update then makes an item that no query returns yet.
func (d *OrderHistoryDao) EventHandlers() []projection.Reaction {
	return []projection.Reaction{
		on(d.addOrder),
		on(d.noteRevised),
		on(d.noteApproved),
		on(d.noteRejected),
		on(d.noteCancelled),
		on(d.noteTicketRequested),
		on(d.noteTicketAccepted),
		on(d.noteTicketDeclined),
		on(d.noteTicketPreparing),
		on(d.noteTicketReady),
		on(d.noteTicketCancelled),
		on(d.noteDeliveryScheduled),
		on(d.notePickedUp),
		on(d.noteDelivered),
	}
}

func (d *OrderHistoryDao) addOrder(e order.Created, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{
		attrConsumerID:         projection.Text(e.ConsumerID),
		attrCreationTime:       projection.Number(e.CreatedAt.UnixMilli()),
		attrRestaurant:         projection.Text(e.Restaurant),
		attrRestaurantKeywords: projection.Text(strings.ToLower(e.Restaurant)),
		attrStatus:             projection.Text(order.StatusApprovalPending),
	}, menu(e.Lines))
}

func (d *OrderHistoryDao) noteRevised(e order.Revised, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, menu(e.Lines))
}

func (d *OrderHistoryDao) noteApproved(_ order.Approved, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrStatus: projection.Text(order.StatusApproved)})
}

func (d *OrderHistoryDao) noteRejected(e order.Rejected, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrStatus: projection.Text(order.StatusRejected), attrReason: projection.Text(e.Reason)})
}

func (d *OrderHistoryDao) noteCancelled(e order.Cancelled, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrStatus: projection.Text(order.StatusCancelled), attrReason: projection.Text(e.Reason)})
}

func (d *OrderHistoryDao) noteTicketRequested(_ ticket.Requested, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrTicketStatus: projection.Text(ticket.StatusAwaitingAcceptance)})
}

func (d *OrderHistoryDao) noteTicketAccepted(_ ticket.Accepted, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrTicketStatus: projection.Text(ticket.StatusAccepted)})
}

func (d *OrderHistoryDao) noteTicketDeclined(_ ticket.Declined, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrTicketStatus: projection.Text(ticket.StatusDeclined)})
}

func (d *OrderHistoryDao) noteTicketPreparing(_ ticket.Preparing, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrTicketStatus: projection.Text(ticket.StatusPreparing)})
}

func (d *OrderHistoryDao) noteTicketReady(_ ticket.Ready, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrTicketStatus: projection.Text(ticket.StatusReady)})
}

func (d *OrderHistoryDao) noteTicketCancelled(_ ticket.Cancelled, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrTicketStatus: projection.Text(ticket.StatusCancelled)})
}

func (d *OrderHistoryDao) noteDeliveryScheduled(_ delivery.Scheduled, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrDeliveryStatus: projection.Text(delivery.StatusScheduled)})
}

func (d *OrderHistoryDao) notePickedUp(_ delivery.PickedUp, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrDeliveryStatus: projection.Text(delivery.StatusPickedUp)})
}

func (d *OrderHistoryDao) noteDelivered(_ delivery.Delivered, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrDeliveryStatus: projection.Text(delivery.StatusDelivered)})
}

// menu returns the attributes that depend on the lines of an order.
func menu(lines []order.Line) attributes {
	names, total := make([]string, len(lines)), int64(0)
	for i, line := range lines {
		names[i] = strings.ToLower(line.Name)
		total += line.Quantity * line.PriceCents
	}
	return attributes{
		attrLines:        lineList(lines),
		attrTotal:        projection.Number(total),
		attrLineKeywords: projection.Text(strings.Join(names, "\n")),
	}
}

// on returns a reaction that makes one write for an event.
func on[E interface{ EventType() string }](note func(E, *journal.Record) projection.Write) projection.Reaction {
	return projection.On(func(_ context.Context, event E, source *journal.Record) ([]projection.Write, error) {
		return []projection.Write{note(event, source)}, nil
	})
}

// idempotentUpdate sets attributes of the order of an event, unless the item has recorded this
// event or a later one of the same aggregate.
func (d *OrderHistoryDao) idempotentUpdate(source *journal.Record, parts ...attributes) projection.Write {
	set := attributes{}
	for _, part := range parts {
		maps.Copy(set, part)
	}
	// Every name has a placeholder, since DynamoDB reserves words such as "status".
	update := types.Update{
		TableName: &d.orders.Table.Name, Key: d.orders.Table.Key(source.Aggregate.Value),
		ExpressionAttributeNames: map[string]string{}, ExpressionAttributeValues: attributes{},
	}
	var assignments []string
	for i, name := range slices.Sorted(maps.Keys(set)) {
		update.ExpressionAttributeNames[fmt.Sprintf("#a%d", i)] = name
		update.ExpressionAttributeValues[fmt.Sprintf(":a%d", i)] = set[name]
		assignments = append(assignments, fmt.Sprintf("#a%d = :a%d", i, i))
	}
	expression := "SET " + strings.Join(assignments, ", ")
	update.UpdateExpression = &expression
	return projection.IdempotentUpdate(update, source)
}
