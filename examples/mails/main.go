// Command mails sends a mail for each event of an order. The mail service loses its first
// reply, and each mail is still sent once.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

type (
	Order struct {
		Customer string
		Shipped  bool
	}
	Placed  struct{ Customer string }
	Shipped struct{ Customer string }
)

func (Placed) EventType() string  { return "order.placed.v1" }
func (Shipped) EventType() string { return "order.shipped.v1" }
func (e Placed) Apply(o *Order)   { o.Customer = e.Customer }
func (Shipped) Apply(o *Order)    { o.Shipped = true }

var Orders = aggregate.Define[Order]("order", Placed{}, Shipped{})

func Place(customer string) aggregate.Decision[Order] {
	return func(Order) (aggregate.Events[Order], error) { return aggregate.Events[Order]{Placed{customer}}, nil }
}

func Ship(o Order) (aggregate.Events[Order], error) {
	return aggregate.Events[Order]{Shipped{o.Customer}}, nil
}

// MailService sends one mail for each key, however often it is called with it.
type MailService struct {
	mu       sync.Mutex
	requests int
	keys     map[string]bool
	answered chan struct{}
}

func (s *MailService) Send(_ context.Context, key, to, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests++; !s.keys[key] {
		s.keys[key] = true
		fmt.Printf("to %s: %s\n", to, text)
	}
	if s.requests == 1 {
		return errors.New("the reply was lost")
	}
	s.answered <- struct{}{}
	return nil
}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	client := dynamotest.Open().Client() // dynamodb.NewFromConfig(...) on AWS
	app := must(millrace.Open(ctx, client, millrace.Config{Prefix: "shop-", Journal: journal.Config{Layout: journal.Packed, Shards: 4}}))
	orders := must(millrace.Repository(app, Orders, repository.Config{}))

	mails := &MailService{keys: map[string]bool{}, answered: make(chan struct{}, 10)}
	group := millrace.Group{Name: "mails", Topics: []string{"order"}, Subscriber: func(c *subscriber.Config) {
		c.Failures = subscriber.Defer(subscriber.Backoff{Pause: 100 * time.Millisecond, MaxPause: 10 * time.Minute, Attempts: 30})
		// After a crash at most one event of each aggregate is delivered again.
		c.Timing.CommitInterval = -1
	}}
	// The id of the event is the idempotency key: it is the same each time that the event comes.
	key := func(ctx context.Context) string { return cqrs.OriginalMessageFromCtx(ctx).UUID }
	check(app.HandleEvents(group,
		cqrs.NewGroupEventHandler(func(ctx context.Context, e *Placed) error {
			return mails.Send(ctx, key(ctx), e.Customer, "we have your order")
		}),
		cqrs.NewGroupEventHandler(func(ctx context.Context, e *Shipped) error {
			return mails.Send(ctx, key(ctx), e.Customer, "your order is on its way")
		})))
	stopped := make(chan error, 1)
	go func() { stopped <- app.Run(ctx) }()

	must(orders.Execute(ctx, "1", Place("ada")))
	must(orders.Execute(ctx, "1", Ship))
	for range 2 {
		select {
		case <-mails.answered:
		case err := <-stopped:
			log.Fatalln("mails:", err)
		}
	}
	stop()
	check(<-stopped)
	fmt.Printf("%d requests, %d mails\n", mails.requests, len(mails.keys))
}

func must[T any](v T, err error) T { check(err); return v }
func check(err error) {
	if err != nil {
		log.Fatalln("mails:", err)
	}
}
