package history_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

// Events are the first n events of each service about an order.
var (
	orderStatuses    = []order.Status{"", order.StatusApprovalPending, order.StatusApproved}
	ticketStatuses   = []ticket.Status{"", ticket.StatusAwaitingAcceptance, ticket.StatusAccepted, ticket.StatusPreparing}
	deliveryStatuses = []delivery.Status{"", delivery.StatusScheduled, delivery.StatusPickedUp}
)

// interleavings returns all orders in which the events of three services can arrive. The events of
// one service stay in order.
func interleavings(left map[string]int) (all [][]string) {
	for _, topic := range topics {
		if left[topic] == 0 {
			continue
		}
		left[topic]--
		for _, rest := range interleavings(left) {
			all = append(all, append([]string{topic}, rest...))
		}
		left[topic]++
	}
	if all == nil {
		return [][]string{nil}
	}
	return all
}

// Each order receives its events in another possible order. A second group, with its own positions,
// handles each event some events later than the first group. So all its events are old.
func TestNeitherTheOrderOfServicesNorOldEventsSetAnAttributeBack(t *testing.T) {
	t.Parallel()
	f := setup(t)
	scripts := interleavings(map[string]int{
		topics[0]: len(orderStatuses) - 1, topics[1]: len(ticketStatuses) - 1, topics[2]: len(deliveryStatuses) - 1,
	})
	require.Len(t, scripts, 210)
	if testdb.IsLocal() { // it would take half a minute for all of them
		all := scripts
		scripts = nil
		for n := 0; n < len(all); n += 7 {
			scripts = append(scripts, all[n])
		}
	}
	for n := range scripts {
		f.commitAll(orderID(n))
	}
	first, second := f.collect("first", len(scripts)), f.collect("second", len(scripts))

	var playing sync.WaitGroup
	// With more at a time, a transaction could wait too long for a processor.
	places := make(chan struct{}, 8)
	for n, script := range scripts {
		playing.Add(1)
		places <- struct{}{}
		go func() {
			defer func() { <-places; playing.Done() }()
			applied := map[string]int{}
			behind := 1 + n%len(script)
			for step := range len(script) + behind {
				if step < len(script) {
					applied[script[step]]++
					if !assert.NoError(t, first.handle(n, script[step])) || !f.shows(n, applied, "%q after %d events", script, step+1) {
						return
					}
				}
				if old := step - behind; old >= 0 {
					if !assert.NoError(t, second.handle(n, script[old])) || !f.shows(n, applied, "%q after %d events, and %d again", script, step+1, old+1) {
						return
					}
				}
			}
		}()
	}
	playing.Wait()
	assert.EqualValues(t, 7*len(scripts), second.projection.Stats().Dropped, "every old event must be left out")
}

func orderID(n int) string { return fmt.Sprintf("%03d", n) }

// commitAll makes the events of an order, its ticket and its delivery.
func (f *fixture) commitAll(id string) {
	f.t.Helper()
	all := func(err error) { f.t.Helper(); require.NoError(f.t, err) }
	details := order.Details{ConsumerID: "ada", Restaurant: "Ajanta", Lines: menu("Naan"), CreatedAt: noon}
	_, err := f.orders.Execute(f.t.Context(), id, commit[order.Order](order.Created{Details: details}, order.Approved{}))
	all(err)
	_, err = f.tickets.Execute(f.t.Context(), id, commit[ticket.Ticket](ticket.Requested{}, ticket.Accepted{}, ticket.Preparing{}))
	all(err)
	_, err = f.deliveries.Execute(f.t.Context(), id, commit[delivery.Delivery](delivery.Scheduled{}, delivery.PickedUp{}))
	all(err)
}

func commit[S any](events ...aggregate.Event[S]) aggregate.Decision[S] {
	return func(S) (aggregate.Events[S], error) { return events, nil }
}

// shows reports whether the history shows the result of the events so far.
func (f *fixture) shows(n int, applied map[string]int, format string, args ...any) bool {
	found, err := f.dao.FindOrder(f.t.Context(), orderID(n))
	if applied[topics[0]] == 0 {
		return assert.ErrorIs(f.t, err, history.ErrNotFound, append([]any{format}, args...)...)
	}
	want := history.Order{
		OrderID: orderID(n), ConsumerID: "ada", Restaurant: "Ajanta", Lines: menu("Naan"), TotalCents: 500, CreationTime: noon,
		Status:         orderStatuses[applied[topics[0]]],
		TicketStatus:   ticketStatuses[applied[topics[1]]],
		DeliveryStatus: deliveryStatuses[applied[topics[2]]],
		Versions: history.Versions{
			Order: uint64(applied[topics[0]]), Ticket: uint64(applied[topics[1]]), Delivery: uint64(applied[topics[2]]),
		},
	}
	return assert.NoError(f.t, err) && assert.Equal(f.t, want, found, append([]any{format}, args...)...)
}

// inbox holds the next message of each aggregate until its turn.
type inbox struct {
	projection *projection.Projection
	next       []map[string]chan *message.Message // by order and topic
}

func (f *fixture) collect(group string, orders int) *inbox {
	f.t.Helper()
	in := &inbox{next: make([]map[string]chan *message.Message, orders)}
	for n := range in.next {
		in.next[n] = map[string]chan *message.Message{}
		for _, topic := range topics {
			// The next message arrives after the ack of this one.
			in.next[n][topic] = make(chan *message.Message, 1)
		}
	}
	var messages map[string]<-chan *message.Message
	in.projection, messages = f.subscribe(group)
	for topic, arriving := range messages {
		go func() {
			for msg := range arriving {
				record, _ := subscriber.RecordFromContext(msg.Context())
				if n, err := strconv.Atoi(record.Aggregate.Value); err == nil {
					in.next[n][topic] <- msg
				}
			}
		}()
	}
	return in
}

var errMissing = errors.New("the event does not come")

func (in *inbox) handle(n int, topic string) error {
	select {
	case msg := <-in.next[n][topic]:
		if err := in.projection.Handle(msg); err != nil {
			return err
		}
		msg.Ack()
		return nil
	case <-time.After(patience):
		return errMissing
	}
}
