package main

import (
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/millrace-dev/millrace/dynamotest/crashtest"
	"github.com/millrace-dev/millrace/examples/booking/service"
	"github.com/millrace-dev/millrace/examples/booking/simulated"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience limits a failing test.
const patience = 2 * time.Minute

// world has the instances of the service with their database, a bank and a mail service.
type world struct {
	*crashtest.Fleet[*service.App]
	t        *testing.T
	client   *http.Client
	settings service.Settings
	bank     *simulated.Bank
	post     *simulated.Post

	mu     sync.Mutex
	random *rand.Rand
}

func newWorld(t *testing.T, layout journal.Layout, seed uint64) *world {
	t.Helper()
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1))}
	w.Fleet = crashtest.New(t, seed, func(ctx context.Context, client *dynamodb.Client, listener net.Listener) (*service.App, error) {
		return open(ctx, client, listener, w.settings)
	})
	w.Patience = patience
	w.client = w.Fleet.Client()
	w.bank = &simulated.Bank{Limit: 2500, Faults: simulated.Faults{Before: w.fault("request of the bank", 0.2), After: w.fault("reply of the bank", 0.2)}}
	w.post = &simulated.Post{Faults: simulated.Faults{Before: w.fault("request of the post", 0.2), After: w.fault("reply of the post", 0.3)}}
	w.settings = service.Settings{
		Layout: layout, Bank: w.bank, Post: w.post, PaymentPatience: 300 * time.Millisecond,
		Subscriber: crashtest.Timing, Process: crashtest.ProcessTiming(),
		Backoff: subscriber.Backoff{Pause: 20 * time.Millisecond, MaxPause: 200 * time.Millisecond, Attempts: 1000},
	}
	return w
}

// grow starts instances.
func (w *world) grow(n int) {
	for range n {
		w.Start()
	}
}

func (w *world) number(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// fault fails calls with a chance, and delays some of them before.
func (w *world) fault(call string, chance float64) func(context.Context) error {
	return func(ctx context.Context) error {
		err := w.Fault(call, chance)
		if err != nil && w.Fault("delay of "+call, 0.1) != nil {
			select {
			case <-ctx.Done():
			case <-time.After(400 * time.Millisecond):
			}
		}
		return err
	}
}

// request sends a request until an instance replies with another status than 503.
func (w *world) request(method, path, key string, body any) (status int, reply []byte) {
	encoded, err := json.Marshal(body)
	require.NoError(w.t, err)
	status, reply, _, err = send(w.t.Context(), w.client, method, path, http.Header{"Idempotency-Key": {key}}, encoded)
	assert.NoError(w.t, err)
	return status, reply
}

func send(ctx context.Context, client *http.Client, method, url string, header http.Header, body []byte) (status int, reply []byte, token string, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	request.Header = header
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	reply, err = io.ReadAll(response.Body)
	return response.StatusCode, reply, response.Header.Get("Consistency-Token"), err
}

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
