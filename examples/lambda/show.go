package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/millrace-dev/millrace/examples/booking/audit"
	"github.com/millrace-dev/millrace/examples/booking/service"
	"github.com/millrace-dev/millrace/examples/booking/simulated"
	"github.com/millrace-dev/millrace/examples/lambda/machine"
	"github.com/millrace-dev/millrace/journal"
)

type options struct {
	bookings       int
	kills, verbose bool
	seed           uint64
	sweep          time.Duration // the interval of the schedule
	timeout        time.Duration // of an invocation
	patience       time.Duration // with payments
	out            io.Writer
}

// world has the functions and what invokes them, the bank and the mail service.
type world struct {
	options
	client        *dynamodb.Client
	bank          *simulated.Bank
	post          *simulated.Post
	api, consumer *machine.Function
	schedule      machine.Schedule
	mapping       *machine.Mapping
	url           string // of the api

	mu       sync.Mutex
	random   *rand.Rand
	dropped  map[string]int           // records, by the reason
	accepted map[string]time.Time     // when a customer's booking was accepted
	replies  []time.Duration          // of accepted bookings
	mailed   map[string]time.Duration // from this time to the customer's mail
}

// show deploys the functions, makes bookings, and checks them. It returns what has happened to the
// functions.
func show(ctx context.Context, db *dynamodb.Client, c options) (map[string]machine.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute+time.Duration(c.bookings)*time.Second)
	defer cancel()
	w := &world{
		options: c, client: db, random: rand.New(rand.NewPCG(c.seed, 0)), accepted: map[string]time.Time{}, dropped: map[string]int{}, mailed: map[string]time.Duration{},
		bank: &simulated.Bank{Limit: limit}, post: &simulated.Post{},
	}
	w.post.Sent = w.sent
	servicesURL, closeServices, err := serve(ctx, services(&slowBank{Bank: w.bank, until: 3 * c.patience / 2}, w.post))
	if err != nil {
		return nil, err
	}
	defer closeServices()
	defer w.close()
	if err := w.deploy(ctx, servicesURL); err != nil {
		return nil, err
	}
	url, closeURL, err := serve(ctx, machine.URL{Function: w.api})
	if err != nil {
		return nil, err
	}
	defer closeURL()
	w.url = url
	var running sync.WaitGroup
	stopped, stop := context.WithCancel(ctx)
	defer running.Wait()
	defer stop()
	for _, run := range []func(context.Context){w.mapping.Run, w.schedule.Run} {
		running.Add(1)
		go func() {
			defer running.Done()
			run(stopped)
		}()
	}
	began := time.Now()
	if err := w.buy(ctx); err != nil {
		return nil, err
	}
	truth, err := w.complete(ctx)
	stop()
	running.Wait()
	if err != nil {
		return nil, err
	}
	stats := map[string]machine.Stats{api: w.api.Stats(), consumer: w.consumer.Stats()}
	w.report(truth, stats, time.Since(began))
	return stats, nil
}

// close ends the processes of the functions.
func (w *world) close() {
	for _, f := range []*machine.Function{w.api, w.consumer} {
		if f != nil {
			f.Close()
		}
	}
}

// deploy creates the tables, the stream, and the functions.
func (w *world) deploy(ctx context.Context, servicesURL string) error {
	s := settings(client{}, w.patience, nil)
	s.Layout, s.ExistingTables = journal.Packed, false
	if _, err := service.Open(ctx, w.client, s); err != nil {
		return err
	}
	table, err := w.client.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName:           aws.String(service.Prefix + "journal"),
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly},
	})
	if err != nil {
		return err
	}
	credentials, err := w.client.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	output := io.Discard
	if w.verbose {
		output = w.out
	}
	function := func(name string, concurrency int) (*machine.Function, error) {
		return machine.NewFunction(machine.Config{Name: name, Timeout: w.timeout, Concurrency: concurrency, Output: output, Env: []string{
			"AWS_ENDPOINT_URL_DYNAMODB=" + *w.client.Options().BaseEndpoint,
			"AWS_ACCESS_KEY_ID=" + credentials.AccessKeyID,
			"AWS_SECRET_ACCESS_KEY=" + credentials.SecretAccessKey,
			servicesEnv + "=" + servicesURL,
			patienceEnv + "=" + w.patience.String(),
		}})
	}
	if w.api, err = function(api, 4); err != nil {
		return err
	}
	if w.consumer, err = function(consumer, 4); err != nil {
		return err
	}
	// The first sweep creates the consumer groups.
	w.schedule = machine.Schedule{Name: "sweep", Every: w.sweep, Invoke: w.consumer.Invoke}
	if err := w.schedule.Once(ctx, time.Now()); err != nil {
		return err
	}
	w.mapping, err = machine.NewMapping(ctx, machine.MappingConfig{
		Streams: dynamodbstreams.New(dynamodbstreams.Options{
			Region: machine.Region, BaseEndpoint: w.client.Options().BaseEndpoint, Credentials: w.client.Options().Credentials,
		}),
		Stream: *table.TableDescription.LatestStreamArn, Invoke: w.consumer.Invoke,
		Batch: 100, Parallelization: 2, Retries: 2, MaximumAge: 5 * time.Minute, Poll: 50 * time.Millisecond,
		Dropped: func(records []streamtypes.Record, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.dropped[err.Error()] += len(records)
		},
		Failed: func(err error) { w.printf("stream: %v\n", err) },
	})
	return err
}

// serve serves on a free port until the caller closes it.
func serve(ctx context.Context, handler http.Handler) (url string, end func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // until it is closed
	}()
	return "http://" + listener.Addr().String(), func() {
		_ = server.Close()
		<-ended
	}, nil
}

// complete waits until each booking has its mail and passes the audit.
func (w *world) complete(ctx context.Context) (*audit.Truth, error) {
	a := audit.Audit{Client: w.client, Bank: w.bank, Post: w.post}
	for n := 0; n*perShow < w.bookings; n++ {
		a.Shows = append(a.Shows, w.showID(n))
	}
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		var truth *audit.Truth
		err := error(nil)
		mails, _ := w.post.Mails()
		if len(mails) < w.bookings {
			err = fmt.Errorf("%d of %d mails", len(mails), w.bookings)
		} else if truth, err = a.Check(ctx); err == nil && len(truth.Status) != w.bookings {
			err = fmt.Errorf("%w: %d bookings, want %d", audit.ErrWrong, len(truth.Status), w.bookings)
		}
		if err == nil || errors.Is(err, audit.ErrWrong) {
			return truth, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("the bookings are not complete in time: %w", err)
		}
	}
}
