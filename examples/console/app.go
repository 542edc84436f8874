package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/catalogue"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/compress"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// settings differ between tests and main.
type settings struct {
	layout  journal.Layout
	hostile bool                    // texts try to attack the page
	quiet   bool                    // nothing writes new events
	refresh time.Duration           // interval of the pages
	logger  watermill.LoggerAdapter // of the console
}

// shop is an application with many faults.
type shop struct {
	*millrace.App
	client *dynamodb.Client
	// Odd is a text in ids, notes and reasons, and tag is at the end of reasons.
	odd, tag  string
	clock     *clock
	faults    *faults
	secret    *encrypt.Encryption
	console   *console.Console
	orders    *repository.Repository[Order]
	payments  *repository.Repository[Payment]
	customers *repository.Repository[Customer]
	checkout  *process.Manager[Checkout]
	totals    *readmodel.Model
	prices    *readmodel.Model
}

const prefix = "shop-" // prefix of the names of tables

// open returns a shop that does not run yet, with a server that has the console.
func open(ctx context.Context, client *dynamodb.Client, listener net.Listener, c settings) (*shop, error) {
	s := &shop{client: client, odd: "parcel 7", clock: newClock(), faults: &faults{}}
	if c.hostile {
		s.odd, s.tag = odd(), " "+image
	}
	encodings, err := s.encodings(ctx)
	if err != nil {
		return nil, err
	}
	if s.App, err = millrace.Open(ctx, client, millrace.Config{
		Prefix: prefix, Journal: journal.Config{Layout: c.layout, Shards: 2, Encodings: encodings, Now: s.clock.Now},
		HandlerTimeout: time.Second,
		Subscriber: func(group string, c *subscriber.Config) {
			c.Timing.LeaseDuration, c.Timing.BehindAfter, c.Timing.CommitInterval = 5*time.Second, 100*time.Millisecond, 100*time.Millisecond
			if group == rebuilt.Group() {
				c.MaxInFlight = 1
			}
		},
	}); err != nil {
		return nil, err
	}
	for _, add := range []func(context.Context) error{s.addRepositories, s.addCheckout, s.addReadModels, s.addGroups} {
		if err := add(ctx); err != nil {
			return nil, err
		}
	}
	return s, s.serve(listener, c)
}

// serve adds a server with the console, as an application does.
func (s *shop) serve(listener net.Listener, c settings) error {
	schemas, err := catalogue.New(catalogue.Config{
		Definitions: []aggregate.AnyDefinition{orders, payments, customers, cards, defineCheckout("").Aggregate()},
	})
	if err != nil {
		return err
	}
	if s.console, err = console.New(console.Config{
		App:          s,
		Catalogue:    schemas,
		AllowActions: true,
		// Every program on this machine may do everything here. A real application identifies the
		// visitor, and checks whether the visitor may do this.
		Authorize: func(*http.Request, console.Action) (actor string, err error) { return "the demo's visitor", nil },
		Refresh:   c.refresh,
		Logger:    c.logger,
	}); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.console)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(s.console.Close)
	return s.Serve(listener, server)
}

// encodings compress large payloads and encrypt the payloads of customers.
func (s *shop) encodings(ctx context.Context) ([]journal.Encoding, error) {
	gzip, err := compress.Gzip(compress.Config{})
	if err != nil {
		return nil, err
	}
	if s.secret, err = newSecret(ctx, s.client, "keys"); err != nil {
		return nil, err
	}
	return []journal.Encoding{gzip, only{"customer", "aes-gcm", s.secret}}, nil
}

// newSecret returns an encryption that stores its keys in a table.
func newSecret(ctx context.Context, client *dynamodb.Client, table string) (*encrypt.Encryption, error) {
	wrapper, err := encrypt.LocalWrapper(make([]byte, encrypt.KeyBytes)) // a real key is a secret
	if err != nil {
		return nil, err
	}
	return encrypt.Open(ctx, client, wrapper, encrypt.KeysConfig{Table: prefix + table})
}

// only encrypts the payloads of one type of aggregates.
type only struct {
	aggregateType, name string
	*encrypt.Encryption
}

func (o only) Name() string { return o.name }

func (o only) Encode(ctx context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	if at.Aggregate.Type != o.aggregateType {
		return payload, false, nil
	}
	return o.Encryption.Encode(ctx, at, payload)
}

// clock returns the times of events. It starts two hours in the past and moves on by 0.1 seconds
// with each call, so that the first events are old. After arrive it returns the time of the
// machine.
type clock struct {
	mu   sync.Mutex
	past time.Time // zero after arrive
}

func newClock() *clock { return &clock{past: time.Now().Add(-2 * time.Hour)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.past.IsZero() {
		return time.Now()
	}
	c.past = c.past.Add(100 * time.Millisecond)
	return c.past
}

// arrive sets the clock to the time of the machine.
func (c *clock) arrive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.past = time.Time{}
}

// run starts the shop and waits until all its faults are visible. The function stop ends it.
func (s *shop) run(ctx context.Context) (stop func() error, err error) {
	if err := s.addHistory(ctx); err != nil {
		return nil, fmt.Errorf("write the history of the shop: %w", err)
	}
	s.clock.arrive()
	if stop, err = s.Start(ctx); err != nil {
		return nil, err
	}
	if err := s.addTroubles(ctx); err != nil {
		_ = stop()
		return nil, err
	}
	return stop, nil
}
