package history

import (
	"strconv"
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

func text[S ~string](s S) types.AttributeValue {
	return &types.AttributeValueMemberS{Value: string(s)}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func lineList(lines []order.Line) types.AttributeValue {
	list := make([]types.AttributeValue, len(lines))
	for i, line := range lines {
		list[i] = &types.AttributeValueMemberM{Value: attributes{
			"name": text(line.Name), "quantity": number(line.Quantity), "priceCents": number(line.PriceCents),
		}}
	}
	return &types.AttributeValueMemberL{Value: list}
}

func orderOf(item attributes) Order {
	o := Order{
		OrderID:        textOf(item[attrOrderID]),
		ConsumerID:     textOf(item[attrConsumerID]),
		Restaurant:     textOf(item[attrRestaurant]),
		TotalCents:     numberOf(item[attrTotal]),
		CreationTime:   time.UnixMilli(numberOf(item[attrCreationTime])).UTC(),
		Status:         order.Status(textOf(item[attrStatus])),
		Reason:         textOf(item[attrReason]),
		TicketStatus:   ticket.Status(textOf(item[attrTicketStatus])),
		DeliveryStatus: delivery.Status(textOf(item[attrDeliveryStatus])),
	}
	version := func(aggregateType string) uint64 {
		id := aggregate.ID{Type: aggregateType, Value: o.OrderID}
		return uint64(numberOf(item[projection.SourceAttribute(id)]))
	}
	o.Versions = Versions{version(order.Definition.Type()), version(ticket.Definition.Type()), version(delivery.Definition.Type())}
	if list, ok := item[attrLines].(*types.AttributeValueMemberL); ok {
		for _, v := range list.Value {
			if m, ok := v.(*types.AttributeValueMemberM); ok {
				o.Lines = append(o.Lines, order.Line{
					Name: textOf(m.Value["name"]), Quantity: numberOf(m.Value["quantity"]), PriceCents: numberOf(m.Value["priceCents"]),
				})
			}
		}
	}
	return o
}

// textOf and numberOf return the zero value for a missing attribute.

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func numberOf(v types.AttributeValue) int64 {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		i, _ := strconv.ParseInt(n.Value, 10, 64) // only this package writes them
		return i
	}
	return 0
}
