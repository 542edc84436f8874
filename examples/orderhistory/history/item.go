package history

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/projection"
)

// Attributes of the table.
const (
	attrOrderID        = "orderId"
	attrConsumerID     = "consumerId"
	attrCreationTime   = "creationTime" // milliseconds since 1970
	attrRestaurant     = "restaurant"
	attrLines          = "lines"
	attrTotal          = "totalCents"
	attrStatus         = "status"
	attrDeliveryStatus = "deliveryStatus"
	attrReason         = "cancelReason"
	// Lower-case copies to search in, as DynamoDB compares bytes. The lines have one of their own because a
	// revision does not know the restaurant.
	attrRestaurantKeywords = "restaurantKeywords"
	attrLineKeywords       = "lineKeywords"
)

// Order is an order as the history shows it.
type Order struct {
	OrderID        string               `json:"orderId"`
	ConsumerID     string               `json:"consumerId"`
	Restaurant     string               `json:"restaurant"`
	Lines          order.Lines          `json:"lines"`
	TotalCents     int64                `json:"totalCents"`
	CreationTime   time.Time            `json:"creationTime"`
	Status         order.Status         `json:"status"`
	DeliveryStatus order.DeliveryStatus `json:"deliveryStatus,omitempty"`
	CancelReason   string               `json:"cancelReason,omitempty"`
	// Version is the number of the order's last event that the history has been told.
	Version uint64 `json:"version"`
}

type attributes = map[string]types.AttributeValue

func text[S ~string](s S) types.AttributeValue {
	return &types.AttributeValueMemberS{Value: string(s)}
}

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func lineList(lines order.Lines) types.AttributeValue {
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
		DeliveryStatus: order.DeliveryStatus(textOf(item[attrDeliveryStatus])),
		CancelReason:   textOf(item[attrReason]),
	}
	id := aggregate.ID{Type: order.Definition.Type(), Value: o.OrderID}
	o.Version = uint64(numberOf(item[projection.SourceAttribute(id)]))
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

// textOf and numberOf give the zero value for an attribute that is absent.

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
