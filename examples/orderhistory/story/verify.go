package story

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
)

// pageSize is small, so that there are many pages.
const pageSize = 7

// verifier compares the REST API with the truth.
type verifier struct {
	api          *apiClient
	truth        truth
	asked, pages int
	// differences are texts for people.
	differences []string
}

func (v *verifier) differ(format string, args ...any) {
	v.differences = append(v.differences, fmt.Sprintf(format, args...))
}

// question is a filter of the API, and the orders that it should match.
type question struct {
	query   url.Values
	matches func(history.Order) bool
}

// questions returns a question about all orders, and questions for each field of the filter.
func questions(from, to time.Time) []question {
	third := to.Sub(from) / 3
	since, until := from.Add(third), from.Add(2*third)
	between := func(o history.Order) bool { return !o.CreationTime.Before(since) && o.CreationTime.Before(until) }
	spell := func(t time.Time) string { return t.Format(time.RFC3339Nano) }
	has := func(word string) func(history.Order) bool {
		return func(o history.Order) bool {
			names := []string{o.Restaurant}
			for _, line := range o.Lines {
				names = append(names, line.Name)
			}
			return strings.Contains(strings.ToLower(strings.Join(names, "\n")), word)
		}
	}
	all := []question{
		{nil, func(history.Order) bool { return true }},
		{url.Values{"keyword": {"PIZZA"}}, has("pizza")},
		{url.Values{"since": {spell(since)}, "until": {spell(until)}}, between},
		{
			url.Values{"since": {spell(since)}, "until": {spell(until)}, "status": {"APPROVED"}, "keyword": {"curry"}},
			func(o history.Order) bool { return between(o) && o.Status == order.StatusApproved && has("curry")(o) },
		},
	}
	for _, status := range []order.Status{order.StatusApprovalPending, order.StatusApproved, order.StatusRejected, order.StatusCancelled} {
		all = append(all, question{
			url.Values{"status": {string(status)}}, func(o history.Order) bool { return o.Status == status },
		})
	}
	for _, status := range []ticket.Status{ticket.StatusAwaitingAcceptance, ticket.StatusReady, ticket.StatusDeclined} {
		all = append(all, question{
			url.Values{"ticketStatus": {string(status)}}, func(o history.Order) bool { return o.TicketStatus == status },
		})
	}
	for _, status := range []delivery.Status{delivery.StatusScheduled, delivery.StatusDelivered} {
		all = append(all, question{
			url.Values{"deliveryStatus": {string(status)}}, func(o history.Order) bool { return o.DeliveryStatus == status },
		})
	}
	return all
}

// verify queries every order, and asks every question about every consumer, page by page.
func (v *verifier) verify(ctx context.Context, consumers int) error {
	for _, torn := range v.truth.torn {
		v.differ("the services do not agree on %s", torn)
	}
	for _, doubled := range v.truth.doubled {
		v.differ("a policy has sent a command twice, for %s", doubled)
	}
	var from, to time.Time
	for _, o := range v.truth.orders {
		if from.IsZero() || o.CreationTime.Before(from) {
			from = o.CreationTime
		}
		if o.CreationTime.After(to) {
			to = o.CreationTime
		}
	}
	for id, want := range v.truth.orders {
		if err := v.askOne(ctx, id, want); err != nil {
			return err
		}
	}
	for n := range consumers {
		for _, q := range questions(from, to) {
			if err := v.ask(ctx, consumerID(n), q); err != nil {
				return err
			}
		}
	}
	return v.refusals(ctx)
}

// askOne queries an order.
func (v *verifier) askOne(ctx context.Context, id string, want history.Order) error {
	var got history.Order
	err := v.api.get(ctx, "/orders/"+url.PathEscape(id), &got)
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		v.differ("%s: %v", id, err)
	case err != nil:
		return err
	default:
		v.compare("/orders/"+id, got, want)
	}
	return nil
}

func (v *verifier) compare(where string, got, want history.Order) {
	if !reflect.DeepEqual(got, want) {
		v.differ("%s shows\n    %+v\n  in place of\n    %+v", where, got, want)
	}
}

// ask reads all pages of the reply to one question.
func (v *verifier) ask(ctx context.Context, consumer string, q question) error {
	v.asked++
	where := fmt.Sprintf("%s?%s", consumer, q.query.Encode())
	missing := v.truth.of(consumer, q.matches)
	query := url.Values{"pageSize": {fmt.Sprint(pageSize)}}
	for name, values := range q.query {
		query[name] = values
	}
	var last time.Time
	for {
		page, err := v.api.orders(ctx, consumer, query)
		if err != nil {
			return err
		}
		v.pages++
		for _, got := range page.Orders {
			if want, expected := missing[got.OrderID]; expected {
				v.compare(where, got, want)
			} else {
				v.differ("%s shows %s twice, or wrongly", where, got.OrderID)
			}
			if !last.IsZero() && got.CreationTime.After(last) {
				v.differ("%s shows %s after an older order", where, got.OrderID)
			}
			delete(missing, got.OrderID)
			last = got.CreationTime
		}
		if page.NextToken == "" {
			break
		}
		if len(page.Orders) != pageSize {
			v.differ("%s shows %d orders on a page that is not the last", where, len(page.Orders))
		}
		query.Set("pageToken", page.NextToken)
	}
	for id := range missing {
		v.differ("%s does not show %s", where, id)
	}
	return nil
}

// refusals checks requests that must be refused.
func (v *verifier) refusals(ctx context.Context) error {
	for what, status := range map[string]int{
		"/orders/no-such-order":                                http.StatusNotFound,
		"/consumers/consumer-1/orders?pageToken=made-up":       http.StatusBadRequest,
		"/consumers/consumer-1/orders?status=EATEN":            http.StatusBadRequest,
		"/consumers/consumer-1/orders?since=the-day-yesterday": http.StatusBadRequest,
	} {
		err := v.api.get(ctx, what, nil)
		var refused *refusal
		switch {
		case errors.As(err, &refused) && refused.Status == status:
		case err == nil, errors.As(err, &refused):
			v.differ("GET %s returns %v, not status %d", what, err, status)
		default:
			return err
		}
	}
	return nil
}
