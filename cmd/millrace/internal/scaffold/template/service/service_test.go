package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/dynamotest/crashtest"
	"github.com/millrace-dev/millrace/httpapi"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/order"
)

// newFleet returns the service on a database in memory. Instances are started by the test.
func newFleet(t *testing.T, patience time.Duration) *crashtest.Fleet[*App] {
	t.Helper()
	return crashtest.New(t, 1, func(ctx context.Context, client *dynamodb.Client, l net.Listener) (*App, error) {
		a, err := Open(ctx, client, Settings{Patience: patience, Subscriber: crashtest.Timing, Process: crashtest.ProcessTiming()})
		if err != nil {
			return nil, err
		}
		return a, a.Serve(l, &http.Server{Handler: a.Routes(), ReadHeaderTimeout: time.Minute})
	})
}

// send sends a request, and returns the reply. Token is that of an earlier reply.
func send(t *testing.T, client *http.Client, method, path, body, token string) (status int, reply, newToken string) {
	r, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if !assert.NoError(t, err) {
		return 0, "", ""
	}
	r.Header.Set(httpapi.IdempotencyKey, "1")
	r.Header.Set(consistency.Header, token)
	response, err := client.Do(r)
	if !assert.NoError(t, err) {
		return 0, "", ""
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	assert.NoError(t, err)
	return response.StatusCode, string(text), response.Header.Get(consistency.Header)
}

func TestAClientReadsWhatItHasWritten(t *testing.T) {
	t.Parallel()
	f := newFleet(t, time.Hour)
	f.Start()
	client := f.Client()
	for range 2 { // a client may repeat its request
		status, reply, _ := send(t, client, http.MethodPut, "/orders/1", `{"customer": "ada", "amount": 4200}`, "")
		require.Equal(t, http.StatusCreated, status, reply)
	}
	_, _, token := send(t, client, http.MethodPost, "/orders/1/payment", "", "")
	const paid = `{"order":"1","customer":"ada","amount":4200,"status":"paid"}`
	_, reply, _ := send(t, client, http.MethodGet, "/orders/1", "", token)
	assert.JSONEq(t, paid, reply)
	_, reply, _ = send(t, client, http.MethodGet, "/customers/ada/orders", "", token)
	assert.JSONEq(t, `{"orders": [`+paid+`], "next": ""}`, reply)
}

func TestRequestsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	f := newFleet(t, time.Hour)
	f.Start()
	for request, want := range map[string]int{
		`PUT /orders/1 {`: http.StatusBadRequest,
		`PUT /orders/1 {"customer": "ada", "amount": 0}`: http.StatusConflict,
		`POST /orders/2/payment `:                        http.StatusConflict,
		`GET /orders/3 `:                                 http.StatusNotFound,
		`GET /customers/ada/orders?page=x `:              http.StatusBadRequest,
	} {
		part := strings.SplitN(request, " ", 3)
		status, reply, _ := send(t, f.Client(), part[0], part[1], part[2], "")
		assert.Equal(t, want, status, "%s: %s", request, reply)
	}
}

func TestOrdersAreRightAmidFaultsAndCrashes(t *testing.T) {
	t.Parallel()
	const total = 12
	f := newFleet(t, time.Second)
	f.Start().CrashAfter(150) // requests to the database
	f.Start()
	client := f.Client()
	calm := f.Storm(0.02)
	var customers sync.WaitGroup
	for n := range total {
		customers.Add(1)
		go func() {
			defer customers.Done()
			path := fmt.Sprintf("/orders/%d", n)
			status, reply, _ := send(t, client, http.MethodPut, path, `{"customer": "ada", "amount": 4200}`, "")
			assert.Equal(t, http.StatusCreated, status, reply)
			if n%2 == 0 { // it may be too late
				status, reply, _ = send(t, client, http.MethodPost, path+"/payment", "", "")
				assert.Contains(t, []int{http.StatusOK, http.StatusConflict}, status, reply)
			}
		}()
	}
	f.Replace()
	customers.Wait()
	f.Replace()
	calm()
	for n := range total {
		f.Eventually(func(ctx context.Context, a *App) error { return a.check(ctx, fmt.Sprint(n)) })
	}
}

// check returns an error if an order is neither paid nor cancelled, or if the read model does not
// show it.
func (a *App) check(ctx context.Context, id string) error {
	o, err := a.orders.Load(ctx, id)
	if err != nil {
		return err
	}
	if o.State.Status == order.StatusPending {
		return errors.New("the order is neither paid nor cancelled")
	}
	row, found, err := a.views.Get(ctx, id)
	if err == nil && (!found || row.Status != o.State.Status) {
		err = fmt.Errorf("the order is %s, but the read model shows %q", o.State.Status, row.Status)
	}
	return err
}
