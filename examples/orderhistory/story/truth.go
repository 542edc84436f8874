package story

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/journal"
)

// truth is what the history should show. It is computed by a replay of the journal, in which each
// event is applied to its aggregate.
type truth struct {
	orders map[string]history.Order
	events uint64
	// torn lists the orders on which the services do not agree, and doubled the events that have
	// led to a command twice.
	torn, doubled []string
}

func loadTruth(ctx context.Context, j *journal.Journal) (truth, error) {
	t := truth{orders: map[string]history.Order{}}
	orders, errOrders := replay(ctx, j, order.Definition)
	tickets, errTickets := replay(ctx, j, ticket.Definition)
	deliveries, errDeliveries := replay(ctx, j, delivery.Definition)
	if err := errors.Join(errOrders, errTickets, errDeliveries); err != nil {
		return t, fmt.Errorf("replay the journal: %w", err)
	}
	t.doubled = slices.Concat(doubled(orders), doubled(tickets), doubled(deliveries))
	for id, o := range orders {
		total := int64(0)
		for _, line := range o.state.Lines {
			total += line.Quantity * line.PriceCents
		}
		t.orders[id] = history.Order{
			OrderID: id, ConsumerID: o.state.ConsumerID, Restaurant: o.state.Restaurant, Lines: o.state.Lines, TotalCents: total,
			CreationTime: o.state.CreatedAt, Status: o.state.Status, Reason: o.state.Reason,
			TicketStatus: tickets[id].state.Status, DeliveryStatus: deliveries[id].state.Status,
			Versions: history.Versions{Order: o.version, Ticket: tickets[id].version, Delivery: deliveries[id].version},
		}
		t.events += o.version + tickets[id].version + deliveries[id].version
		if !agree(o.state, tickets[id].state, deliveries[id].state) {
			t.torn = append(t.torn, fmt.Sprintf("%s: the order is %+v, the ticket %+v, the delivery %+v", id, o.state, tickets[id].state, deliveries[id].state))
		}
	}
	return t, nil
}

// agree reports whether the services are in the states to which the policies should lead.
func agree(o order.Order, t ticket.Ticket, d delivery.Delivery) bool {
	switch o.Status {
	case order.StatusApprovalPending:
		return t == ticket.Ticket{Status: ticket.StatusAwaitingAcceptance, Revision: o.Revision} && d.Status == ""
	case order.StatusApproved:
		cooks := t.Status == ticket.StatusAccepted || t.Status == ticket.StatusPreparing || t.Status == ticket.StatusReady
		return cooks && t.Revision == o.Revision && d.Status != ""
	case order.StatusRejected:
		return t.Status == ticket.StatusDeclined && d.Status == ""
	case order.StatusCancelled:
		return t.Status == ticket.StatusCancelled && d.Status == ""
	}
	return false
}

type replayed[S any] struct {
	state   S
	version uint64
	doubled []string
}

func doubled[S any](all map[string]replayed[S]) (doubled []string) {
	for _, each := range all {
		doubled = append(doubled, each.doubled...)
	}
	return doubled
}

// replay applies all events of a type of aggregates, without snapshots.
func replay[S any](ctx context.Context, j *journal.Journal, definition aggregate.Definition[S]) (map[string]replayed[S], error) {
	all := map[string]replayed[S]{}
	for head, err := range j.Heads(ctx, journal.HeadsQuery{AggregateType: definition.Type()}) {
		if err != nil {
			return nil, err
		}
		r, causes := replayed[S]{version: head.Version}, map[string]string{}
		for event, err := range j.Events(ctx, head.Aggregate, 1, head.Version) {
			if err == nil {
				err = definition.Replay(&r.state, event.EventType, event.Payload)
			}
			if err != nil {
				return nil, err
			}
			if cause := event.Metadata[aggregate.CausationIDKey]; cause != "" {
				if commit, known := causes[cause]; known && commit != event.CommitID {
					r.doubled = append(r.doubled, fmt.Sprintf("%s, event %d: %s", event.Aggregate, event.Number, event.EventType))
				}
				causes[cause] = event.CommitID
			}
		}
		all[head.Aggregate.Value] = r
	}
	return all, nil
}

// of returns the matching orders of a consumer.
func (t truth) of(consumer string, matches func(history.Order) bool) map[string]history.Order {
	orders := map[string]history.Order{}
	for id, o := range t.orders {
		if o.ConsumerID == consumer && matches(o) {
			orders[id] = o
		}
	}
	return orders
}
