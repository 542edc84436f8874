package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/booking/service"
	"github.com/millrace-dev/millrace/examples/booking/simulated"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience limits a failing test.
const patience = 2 * time.Minute

// world has a database, a bank and a mail service, and the instances of the service.
type world struct {
	t        *testing.T
	db       *dynamotest.DB
	settings service.Settings
	bank     *simulated.Bank
	post     *simulated.Post

	mu        sync.Mutex
	random    *rand.Rand
	calm      bool
	instances []*instance
}

// instance is one process of the service.
type instance struct {
	proxy *dynamotest.Proxy // its connection to the database
	app   *service.App
	url   string
	stop  context.CancelFunc
	ended chan error
}

func newWorld(t *testing.T, layout journal.Layout, seed uint64) *world {
	t.Helper()
	w := &world{t: t, db: dynamotest.New(t, dynamotest.WithSeed(seed)), random: rand.New(rand.NewPCG(seed, 1)), calm: true}
	w.bank = &simulated.Bank{Limit: 2500, Faults: simulated.Faults{Before: w.fault(0.2), After: w.fault(0.2)}}
	w.post = &simulated.Post{Faults: simulated.Faults{Before: w.fault(0.2), After: w.fault(0.3)}}
	w.settings = service.Settings{
		Layout: layout, Bank: w.bank, Post: w.post, PaymentPatience: 300 * time.Millisecond,
		Subscriber: func(_ string, c *subscriber.Config) {
			c.Timing.PollInterval, c.Timing.MaxPollInterval, c.Timing.LeaseDuration = 5*time.Millisecond, 50*time.Millisecond, time.Second
			c.Timing.CommitInterval, c.CloseTimeout = 50*time.Millisecond, 500*time.Millisecond
			c.NackResendSleep, c.MaxNackResendSleep = 5*time.Millisecond, 100*time.Millisecond
		},
		Process: process.Config{PollInterval: 20 * time.Millisecond, RetryAfter: 500 * time.Millisecond},
		Backoff: subscriber.Backoff{Pause: 20 * time.Millisecond, MaxPause: 200 * time.Millisecond, Attempts: 1000},
	}
	return w
}

// draws returns true with the given chance, unless the world is calm.
func (w *world) draws(chance float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.calm && w.random.Float64() < chance
}

func (w *world) number(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func (w *world) setCalm(calm bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calm = calm
}

// fault fails calls with a chance, and delays some of them before.
func (w *world) fault(chance float64) func(context.Context) error {
	return func(ctx context.Context) error {
		if !w.draws(chance) {
			return nil
		}
		if w.draws(0.1) {
			select {
			case <-ctx.Done():
			case <-time.After(400 * time.Millisecond):
			}
		}
		return errors.New("the service is out of order")
	}
}

// start opens an instance. It tries again until the database replies.
func (w *world) start() *instance {
	proxy := dynamotest.OpenProxy(w.db.Client())
	i := &instance{proxy: proxy, ended: make(chan error, 1)}
	ctx, stop := context.WithCancel(context.Background())
	i.stop = stop
	require.Eventually(w.t, func() bool {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return false
		}
		if i.app, err = open(ctx, proxy.Client(), listener, w.settings); err != nil {
			_ = listener.Close()
			return false
		}
		i.url = "http://" + listener.Addr().String()
		return true
	}, patience, 10*time.Millisecond, "an instance must open")
	go func() { i.ended <- i.app.Run(ctx) }()
	return i
}

// grow adds instances.
func (w *world) grow(n int) {
	for range n {
		i := w.start()
		w.mu.Lock()
		w.instances = append(w.instances, i)
		w.mu.Unlock()
	}
}

// replace crashes or stops an instance, and starts another one.
func (w *world) replace() {
	next := w.start()
	w.mu.Lock()
	n := w.random.IntN(len(w.instances))
	old := w.instances[n]
	w.instances[n] = next
	crashes := w.random.IntN(2) == 0
	w.mu.Unlock()
	if crashes {
		old.proxy.Close()
	}
	old.stop()
	if err := <-old.ended; err != nil { // the database was not reachable
		w.t.Log(err)
	}
	old.proxy.Close()
}

// end stops all instances.
func (w *world) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.instances {
		i.stop()
		// A busy machine may need longer than CloseTimeout.
		if err := <-i.ended; err != nil {
			w.t.Log(err)
		}
		i.proxy.Close()
	}
}

func (w *world) url() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.instances[w.random.IntN(len(w.instances))].url
}

// request sends a request until an instance replies with another status than 503. An instance that
// crashes does not reply, so each attempt has a time limit.
func (w *world) request(method, path, key string, body any) (status int, reply []byte) {
	encoded, err := json.Marshal(body)
	require.NoError(w.t, err)
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		status, reply, _, err = send(attempt, method, w.url()+path, http.Header{"Idempotency-Key": {key}}, encoded)
		cancel()
		if err == nil && status != http.StatusServiceUnavailable {
			return status, reply
		}
	}
	assert.Fail(w.t, "no answer", "%s %s: %d %v", method, path, status, err)
	return 0, nil
}

func send(ctx context.Context, method, url string, header http.Header, body []byte) (status int, reply []byte, token string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	reply, err = io.ReadAll(response.Body)
	return response.StatusCode, reply, response.Header.Get("Consistency-Token"), err
}

func (w *world) client() *dynamodb.Client { return w.db.Client() }

// schedule adds shows with seats.
func (w *world) schedule(shows, seats int) {
	for n := range shows {
		body := map[string]any{"price": 1000, "seats": []string{}}
		for s := range seats {
			body["seats"] = append(body["seats"].([]string), seat(s)) //nolint:forcetypeassert // set above
		}
		status, reply := w.request(http.MethodPut, "/shows/"+showID(n), "", body)
		// A request with a timeout may have scheduled the show.
		require.Contains(w.t, []int{http.StatusCreated, http.StatusConflict}, status, string(reply))
	}
}

func showID(n int) string { return fmt.Sprintf("show-%d", n) }
func seat(n int) string   { return fmt.Sprintf("%c%d", 'A'+n/10, n%10+1) }
