package crashtest_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest/crashtest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// An order is placed once, and the customer gets a mail.
type (
	order  struct{ Placed bool }
	placed struct{}
)

func (placed) EventType() string { return "order.placed.v1" }
func (placed) Apply(o *order)    { o.Placed = true }

var orders = aggregate.Define[order]("order", placed{})

func place(o order) (aggregate.Events[order], error) {
	if o.Placed {
		return nil, nil // a client has repeated its request
	}
	return aggregate.Events[order]{placed{}}, nil
}

// shop is the service: it takes orders over HTTP.
type shop struct {
	*millrace.App
	orders *repository.Repository[order]
}

func openShop(ctx context.Context, client *dynamodb.Client, l net.Listener, mails *mailbox) (*shop, error) {
	app, err := millrace.Open(ctx, client, millrace.Config{
		Journal: journal.Config{Layout: journal.Packed, Shards: 2}, Subscriber: crashtest.Timing,
	})
	if err != nil {
		return nil, err
	}
	s := &shop{App: app}
	if s.orders, err = millrace.Repository(app, orders, repository.Config{}); err != nil {
		return nil, err
	}
	err = app.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"order"}},
		cqrs.NewGroupEventHandler(func(ctx context.Context, _ *placed) error {
			id, _, _ := subscriber.AggregateFromContext(ctx)
			return mails.send(id.Value)
		}))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /orders/{order}", func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.orders.Execute(r.Context(), r.PathValue("order"), place); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return s, app.Serve(l, &http.Server{Handler: mux}) //nolint:gosec // of a test
}

// mailbox is a double of a mail service that sends one mail for each key.
type mailbox struct {
	fault func(call string, chance float64) error

	mu   sync.Mutex
	sent map[string]bool
}

func (m *mailbox) send(key string) error {
	if err := m.fault("mail "+key, 0.2); err != nil {
		return err
	}
	m.mu.Lock()
	m.sent[key] = true
	m.mu.Unlock()
	return m.fault("reply "+key, 0.2)
}

func (m *mailbox) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.sent)
}

// A shop takes orders and sends mails while requests fail and its instances crash.
func Example() {
	t := &probe{ctx: context.Background()} // a test has its *testing.T
	defer t.end()

	mails := &mailbox{sent: map[string]bool{}}
	fleet := crashtest.New(t, 1, func(ctx context.Context, client *dynamodb.Client, l net.Listener) (*shop, error) {
		return openShop(ctx, client, l, mails)
	})
	mails.fault = fleet.Fault
	fleet.Start()
	fleet.Start().CrashAfter(100)

	calm := fleet.Storm(0.02)
	client := fleet.Client()
	for n := range 20 {
		r, _ := http.NewRequest(http.MethodPut, fmt.Sprintf("/orders/%d", n), http.NoBody) //nolint:noctx // of a test
		reply, err := client.Do(r)
		if err != nil {
			t.Fatalf("order %d: %v", n, err)
		}
		_ = reply.Body.Close()
		if n%5 == 4 {
			fleet.Replace()
		}
	}
	calm()
	fleet.Eventually(func(context.Context, *shop) error {
		if n := mails.count(); n < 20 {
			return fmt.Errorf("%d mails", n)
		}
		return nil
	})
	fmt.Println(mails.count(), "mails")

	// Output: 20 mails
}
