package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// The id of an order says what happens to it: the mails of skipped-1 cannot be sent, for example.
const (
	blocked  = "blocked"
	parked   = "parked"
	skipped  = "skipped"
	stopping = "stopping"
	unsent   = "unsent"
	overdue  = "overdue"
	paid     = "paid"
	web      = "web"
)

// faults decides which orders have a fault, by the kinds in their ids.
type faults struct {
	mu       sync.Mutex
	repaired map[string]bool
}

// hit reports whether an order has a fault of a kind.
func (f *faults) hit(kind, order string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.HasPrefix(order, kind) && !f.repaired[order]
}

// repair ends the faults of an order.
func (f *faults) repair(order string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.repaired == nil {
		f.repaired = map[string]bool{}
	}
	f.repaired[order] = true
}

// failing returns a handler that fails for notes of orders with a fault.
func (f *faults) failing(kind, reason string) message.NoPublishHandlerFunc {
	return func(msg *message.Message) error {
		id, _, _ := subscriber.AggregateFromContext(msg.Context())
		if msg.Metadata.Get(publisher.NameKey) == (Noted{}).EventType() && f.hit(kind, id.Value) {
			return fmt.Errorf("%s of %s", reason, id.Value)
		}
		return nil
	}
}

func (s *shop) addRepositories(context.Context) (err error) {
	config := repository.Config{Snapshots: repository.Every(50), Redundancy: &repository.Redundancy{Keep: 3}}
	if s.orders, err = millrace.Repository(s.App, orders, config); err != nil {
		return err
	}
	if s.payments, err = millrace.Repository(s.App, payments, repository.Config{}); err != nil {
		return err
	}
	s.customers, err = millrace.Repository(s.App, customers, repository.Config{})
	return err
}

// addCheckout adds the process manager, and the handler of its commands.
func (s *shop) addCheckout(ctx context.Context) (err error) {
	s.checkout, err = millrace.Process(ctx, s.App, defineCheckout("nobody has decided what happens to unpaid orders"+s.tag), process.Config{
		Publisher: unreliable{s.Publisher(), s.faults, s.tag}, RetryAfter: 50 * time.Second,
	}, "order", "payment")
	if err != nil {
		return err
	}
	return s.HandleCommands(command.Handler("request-payment", s.payments, func(c *RequestPayment) (string, decisionOnPayment) {
		return c.Order, func(Payment) (paymentEvents, error) {
			if strings.HasPrefix(c.Order, paid) {
				return paymentEvents{Requested{100}, Captured{}}, nil
			}
			return paymentEvents{Requested{100}}, nil
		}
	}))
}

// unreliable is a publisher that fails for some processes.
type unreliable struct {
	message.Publisher
	faults *faults
	tag    string
}

func (u unreliable) Publish(topic string, messages ...*message.Message) error {
	for _, m := range messages {
		if id := m.Metadata.Get(publisher.AggregateIDKey); u.faults.hit(unsent, id) {
			return fmt.Errorf("the line to the bank is cut%s: %s", u.tag, id)
		}
	}
	return u.Publisher.Publish(topic, messages...)
}

var rebuilt = readmodel.Generation{Model: "totals", Number: 2}

// addReadModels adds two read models: the totals of orders, whose second generation is slow, and
// the prices of items, whose second generation could serve.
func (s *shop) addReadModels(ctx context.Context) (err error) {
	topics := []string{"order"}
	s.totals, err = s.ReadModel(ctx, readmodel.Config{Name: "totals", Topics: topics}, func(ctx context.Context, g readmodel.Generation) ([]projection.Reaction, error) {
		table := projection.Table{Name: g.Table(prefix + "totals"), PartitionKey: "order"}
		return []projection.Reaction{projection.On(func(_ context.Context, e LineAdded, r *journal.Record) ([]projection.Write, error) {
			if g == rebuilt {
				pause(ctx, 5*time.Second)
			}
			return add(table, r.Aggregate.Value, e.Quantity*e.Price), ctx.Err()
		})}, projection.CreateTable(ctx, s.client, table)
	})
	if err != nil {
		return err
	}
	s.prices, err = s.ReadModel(ctx, readmodel.Config{Name: "prices", Topics: topics}, func(ctx context.Context, g readmodel.Generation) ([]projection.Reaction, error) {
		table := projection.Table{Name: g.Table(prefix + "prices"), PartitionKey: "item"}
		return []projection.Reaction{projection.On(func(_ context.Context, e LineAdded, _ *journal.Record) ([]projection.Write, error) {
			return add(table, e.Item, e.Price), nil
		})}, projection.CreateTable(ctx, s.client, table)
	})
	if err != nil {
		return err
	}
	for _, m := range []*readmodel.Model{s.totals, s.prices} {
		if _, err := m.Begin(ctx); err != nil {
			return err
		}
	}
	return nil
}

// add adds to the number of an item.
func add(table projection.Table, key string, by int) []projection.Write {
	return []projection.Write{projection.Update(types.Update{
		TableName: &table.Name, Key: table.Key(key), UpdateExpression: aws.String("ADD amount :by"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":by": &types.AttributeValueMemberN{Value: strconv.Itoa(by)}},
	})}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// addGroups adds consumer groups that work, and a group for each way in which one can fail.
func (s *shop) addGroups(ctx context.Context) error {
	history := projection.Table{Name: prefix + "history", PartitionKey: "customer"}
	if err := projection.CreateTable(ctx, s.client, history); err != nil {
		return err
	}
	if _, err := s.Project(group("history", subscriber.Block()), projection.On(func(_ context.Context, e Placed, _ *journal.Record) ([]projection.Write, error) {
		return add(history, e.Customer, 1), nil
	})); err != nil {
		return err
	}
	if err := s.HandleEvents(group("confirmations", subscriber.Block()), cqrs.NewGroupEventHandler(func(ctx context.Context, _ *Placed) error {
		id, _, _ := subscriber.AggregateFromContext(ctx)
		if !strings.HasPrefix(id.Value, web) {
			return nil
		}
		_, err := s.orders.Execute(ctx, id.Value, confirm)
		return err
	})); err != nil {
		return err
	}
	works := func(*message.Message) error { return nil }
	for name, g := range map[string]struct {
		failures subscriber.FailurePolicy
		handle   message.NoPublishHandlerFunc
	}{
		"labels":   {subscriber.Block(), works},
		"search":   {subscriber.Block(), works}, // addTroubles pauses this group
		"billing":  {subscriber.Block(), s.faults.failing(blocked, "no invoice for the note")},
		"shipping": {subscriber.Park(1), s.faults.failing(parked, "no carrier takes "+s.odd)},
		"mails":    {subscriber.Skip(1), s.faults.failing(skipped, "the mail server refuses "+s.odd)},
		"ledger":   {subscriber.Stop(1), s.faults.failing(stopping, "the books do not balance "+s.odd)},
	} {
		if err := s.Handle(group(name, g.failures), g.handle); err != nil {
			return err
		}
	}
	if s.tag == "" {
		return nil
	}
	return s.Handle(millrace.Group{Name: image, Topics: []string{oddTopic}}, works)
}

// group returns a consumer group on the orders.
func group(name string, failures subscriber.FailurePolicy) millrace.Group {
	return millrace.Group{Name: name, Topics: []string{"order"}, Subscriber: func(c *subscriber.Config) { c.Failures = failures }}
}
