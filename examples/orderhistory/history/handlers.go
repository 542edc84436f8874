package history

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
)

// Reactions are what the events do to the history: for each event one update of one item, idempotent, so
// that an event that comes again, or late, never sets an attribute back to a past value.
func (d *DAO) Reactions() []projection.Reaction {
	return []projection.Reaction{
		on(d.addOrder),
		on(d.noteApproved),
		on(d.noteRevised),
		on(d.noteCancelled),
		on(d.notePickedUp),
		on(d.noteDelivered),
	}
}

func (d *DAO) addOrder(e order.Created, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{
		attrConsumerID:         text(e.ConsumerID),
		attrCreationTime:       number(e.CreatedAt.UnixMilli()),
		attrRestaurant:         text(e.Restaurant),
		attrRestaurantKeywords: text(strings.ToLower(e.Restaurant)),
		attrStatus:             text(order.StatusApprovalPending),
	}, menu(e.Lines))
}

func (d *DAO) noteApproved(_ order.Approved, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrStatus: text(order.StatusApproved)})
}

func (d *DAO) noteRevised(e order.Revised, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, menu(e.Lines))
}

func (d *DAO) noteCancelled(e order.Cancelled, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrStatus: text(order.StatusCancelled), attrReason: text(e.Reason)})
}

func (d *DAO) notePickedUp(_ order.PickedUp, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrDeliveryStatus: text(order.DeliveryPickedUp)})
}

func (d *DAO) noteDelivered(_ order.Delivered, source *journal.Record) projection.Write {
	return d.idempotentUpdate(source, attributes{attrDeliveryStatus: text(order.DeliveryDelivered)})
}

// menu is what depends on the lines of an order.
func menu(lines order.Lines) attributes {
	names := make([]string, len(lines))
	for i, line := range lines {
		names[i] = strings.ToLower(line.Name)
	}
	return attributes{
		attrLines:        lineList(lines),
		attrTotal:        number(lines.TotalCents()),
		attrLineKeywords: text(strings.Join(names, "\n")),
	}
}

// on makes a reaction of what an event notes.
func on[E interface{ EventType() string }](note func(E, *journal.Record) projection.Write) projection.Reaction {
	return projection.On(func(_ context.Context, event E, source *journal.Record) ([]projection.Write, error) {
		return []projection.Write{note(event, source)}, nil
	})
}

// idempotentUpdate sets attributes of the order that the event belongs to, unless the item has seen this
// event or a later one of the same aggregate.
func (d *DAO) idempotentUpdate(source *journal.Record, parts ...attributes) projection.Write {
	set := attributes{}
	for _, part := range parts {
		maps.Copy(set, part)
	}
	// Every name has a placeholder: "status" is only one of DynamoDB's reserved words.
	update := types.Update{
		TableName: &d.table, Key: key(source.Aggregate.Value),
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
