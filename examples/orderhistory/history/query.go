package history

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Page is a part of a consumer's order history, newest first.
type Page struct {
	Orders []Order `json:"orders"`
	// NextToken selects the next page. It is empty on the last page only: a page may have few
	// orders, or none, if the filter matches few.
	NextToken string `json:"nextPageToken,omitempty"`
}

// maxKey is the maximum size of a partition key in DynamoDB, in bytes.
const maxKey = 2048

// minRead is the number of orders that are read at once if the filter may remove most of them.
const minRead = 100

// FindOrderHistory returns a page of the orders of a consumer. It reads the index, which is
// eventually consistent.
//
// DynamoDB counts the orders that it reads before it filters them. So FindOrderHistory reads until
// the page is full or it has read Config.MaxRead orders: a filter that matches nothing must not
// read for minutes. In the second case the page is short, and its token continues after the orders
// that were read. A page that is not the last costs the read of one more order, which shows that
// there is one.
//
// Errors: [ErrInvalidFilter], [ErrInvalidPageToken], journal.ErrThrottled.
func (d *OrderHistoryDao) FindOrderHistory(ctx context.Context, consumerID string, filter Filter) (Page, error) {
	if n := len(consumerID); n == 0 || n > maxKey {
		return Page{}, &FilterError{"consumer", fmt.Sprintf("has %d bytes, not 1 to %d", n, maxKey)}
	}
	f, err := filter.checked()
	if err != nil {
		return Page{}, err
	}
	query := d.query(consumerID, f)
	if f.PageToken != "" {
		last, err := readPageToken(consumerID, f)
		if err != nil {
			return Page{}, err
		}
		query.ExclusiveStartKey = last.item(consumerID)
	}
	page := Page{Orders: []Order{}} // an empty list, not null, in JSON
	for left := d.config.MaxRead; ; {
		query.Limit = aws.Int32(min(*query.Limit, int32(left)))
		out, err := d.client.Query(ctx, query)
		if err != nil {
			return Page{}, d.explain("find orders of "+consumerID, err)
		}
		for _, item := range out.Items {
			if len(page.Orders) == f.PageSize {
				last := page.Orders[f.PageSize-1]
				page.NextToken = pageToken(consumerID, f, lastKey{last.OrderID, last.CreationTime.UnixMilli()})
				return page, nil
			}
			page.Orders = append(page.Orders, orderOf(item))
		}
		if out.LastEvaluatedKey == nil {
			return page, nil
		}
		if left -= int(out.ScannedCount); left <= 0 {
			page.NextToken = pageToken(consumerID, f, lastKeyOf(out.LastEvaluatedKey))
			return page, nil
		}
		query.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func (d *OrderHistoryDao) query(consumerID string, f Filter) *dynamodb.QueryInput {
	q := &dynamodb.QueryInput{
		TableName:              &d.config.Table,
		IndexName:              aws.String(Index),
		ScanIndexForward:       aws.Bool(false),
		Limit:                  aws.Int32(int32(f.PageSize + 1)),
		KeyConditionExpression: aws.String("#consumer = :consumer AND #time BETWEEN :since AND :until"),
		ExpressionAttributeNames: map[string]string{
			"#consumer": attrConsumerID, "#time": attrCreationTime,
		},
		ExpressionAttributeValues: attributes{
			":consumer": text(consumerID), ":since": number(f.since()), ":until": number(f.until() - 1),
		},
	}
	var conditions []string
	equal := func(attribute, value string) {
		if value != "" {
			conditions = append(conditions, fmt.Sprintf("#%s = :%[1]s", attribute))
			q.ExpressionAttributeNames["#"+attribute] = attribute
			q.ExpressionAttributeValues[":"+attribute] = text(value)
		}
	}
	equal(attrStatus, string(f.Status))
	equal(attrTicketStatus, string(f.TicketStatus))
	equal(attrDeliveryStatus, string(f.DeliveryStatus))
	for i, word := range f.words() {
		conditions = append(conditions, fmt.Sprintf("(contains(#restaurant, :w%d) OR contains(#lines, :w%d))", i, i))
		q.ExpressionAttributeNames["#restaurant"] = attrRestaurantKeywords
		q.ExpressionAttributeNames["#lines"] = attrLineKeywords
		q.ExpressionAttributeValues[fmt.Sprintf(":w%d", i)] = text(word)
	}
	if conditions != nil {
		q.FilterExpression = aws.String(strings.Join(conditions, " AND "))
		q.Limit = aws.Int32(max(minRead, *q.Limit))
	}
	return q
}
