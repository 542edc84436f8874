package history

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/projection"
)

// These are the attributes of the table.
const (
	attrOrderID        = "orderId"
	attrConsumerID     = "consumerId"
	attrCreationTime   = "creationTime" // milliseconds since 1970
	attrRestaurant     = "restaurant"
	attrLines          = "lines"
	attrTotal          = "totalCents"
	attrStatus         = "status"
	attrReason         = "reason"
	attrTicketStatus   = "ticketStatus"
	attrDeliveryStatus = "deliveryStatus"
	// Lower-case copies for the search, since DynamoDB compares bytes. The lines have their own
	// copy, because the event of a revision does not contain the restaurant.
	attrRestaurantKeywords = "restaurantKeywords"
	attrLineKeywords       = "lineKeywords"
)

// Order is an order in the history.
type Order struct {
	OrderID      string       `json:"orderId"`
	ConsumerID   string       `json:"consumerId"`
	Restaurant   string       `json:"restaurant"`
	Lines        []order.Line `json:"lines"`
	TotalCents   int64        `json:"totalCents"`
	CreationTime time.Time    `json:"creationTime"`
	Status       order.Status `json:"status"`
	Reason       string       `json:"reason,omitempty"` // why it was rejected or cancelled
	// Empty until the kitchen has been asked.
	TicketStatus ticket.Status `json:"ticketStatus,omitempty"`
	// Empty until the courier has been asked.
	DeliveryStatus delivery.Status `json:"deliveryStatus,omitempty"`
	// Versions holds the number of each service's last event about the order that the history
	// shows, or 0 for none.
	Versions Versions `json:"versions"`
}

// Versions are the versions of the aggregates of one order.
type Versions struct {
	Order    uint64 `json:"order"`
	Ticket   uint64 `json:"ticket"`
	Delivery uint64 `json:"delivery"`
}

type attributes = map[string]types.AttributeValue

func lineList(lines []order.Line) types.AttributeValue {
	list := make([]types.AttributeValue, len(lines))
	for i, line := range lines {
		list[i] = &types.AttributeValueMemberM{Value: attributes{
			"name": projection.Text(line.Name), "quantity": projection.Number(line.Quantity), "priceCents": projection.Number(line.PriceCents),
		}}
	}
	return &types.AttributeValueMemberL{Value: list}
}

func orderOf(row projection.Row) (Order, error) {
	o := Order{
		OrderID:        row.Text(attrOrderID),
		ConsumerID:     row.Text(attrConsumerID),
		Restaurant:     row.Text(attrRestaurant),
		TotalCents:     row.Number(attrTotal),
		CreationTime:   time.UnixMilli(row.Number(attrCreationTime)).UTC(),
		Status:         order.Status(row.Text(attrStatus)),
		Reason:         row.Text(attrReason),
		TicketStatus:   ticket.Status(row.Text(attrTicketStatus)),
		DeliveryStatus: delivery.Status(row.Text(attrDeliveryStatus)),
	}
	version := func(aggregateType string) uint64 {
		id := aggregate.ID{Type: aggregateType, Value: o.OrderID}
		return uint64(row.Number(projection.SourceAttribute(id)))
	}
	o.Versions = Versions{version(order.Definition.Type()), version(ticket.Definition.Type()), version(delivery.Definition.Type())}
	if list, ok := row[attrLines].(*types.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			if m, ok := v.(*types.AttributeValueMemberM); ok {
				line := projection.Row(m.Value)
				o.Lines = append(o.Lines, order.Line{Name: line.Text("name"), Quantity: line.Number("quantity"), PriceCents: line.Number("priceCents")})
			}
		}
	}
	return o, nil
}
