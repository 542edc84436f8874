package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/projection"
)

// Page is a part of a consumer's order history, newest first.
type Page struct {
	Orders []Order `json:"orders"`
	// NextToken selects the next page. It is empty on the last page only: a page may have few
	// orders, or none, if the filter matches few.
	NextToken string `json:"nextPageToken,omitempty"`
}

// FindOrderHistory returns a page of the orders of a consumer. It reads the index, which is
// eventually consistent. It reads at most Config.MaxRead orders: a filter that matches nothing must
// not read for minutes.
//
// Errors: [ErrInvalidFilter], projection.ErrPageToken, journal.ErrThrottled.
func (d *OrderHistoryDao) FindOrderHistory(ctx context.Context, consumerID string, filter Filter) (Page, error) {
	f, err := filter.checked()
	if err != nil {
		return Page{}, err
	}
	page, err := d.orders.Page(ctx, f.query(consumerID))
	var invalid *projection.QueryError
	switch {
	case errors.As(err, &invalid):
		return Page{}, &FilterError{"consumer", invalid.Reason}
	case errors.Is(err, projection.ErrPageToken):
		return Page{}, projection.ErrPageToken // its text is for the client
	case err != nil:
		return Page{}, fmt.Errorf("find orders of %q: %w", consumerID, err)
	}
	return Page{page.Rows, page.NextToken}, nil
}

func (f Filter) query(consumerID string) projection.Query {
	q := projection.Query{
		Index: Index, Partition: consumerID, From: projection.Number(f.since()), To: projection.Number(f.until() - 1),
		Descending: true, Limit: f.PageSize, Token: f.PageToken,
	}
	equal := func(attribute, value string) {
		if value != "" {
			q.Filters = append(q.Filters, projection.Where(attribute, "=", projection.Text(value)))
		}
	}
	equal(attrStatus, string(f.Status))
	equal(attrTicketStatus, string(f.TicketStatus))
	equal(attrDeliveryStatus, string(f.DeliveryStatus))
	for _, word := range f.words() {
		q.Filters = append(q.Filters, projection.AnyOf(
			projection.Where(attrRestaurantKeywords, "contains", projection.Text(word)),
			projection.Where(attrLineKeywords, "contains", projection.Text(word)),
		))
	}
	return q
}
