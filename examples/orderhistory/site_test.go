package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/internal/apptest"
	"github.com/millrace-dev/millrace/examples/internal/browsertest"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
)

var chromium browsertest.Chromium // one for all tests

func TestMain(m *testing.M) {
	code := m.Run()
	chromium.Close()
	os.Exit(code)
}

// site is a running server.
type site struct {
	t    *testing.T
	url  string
	out  *apptest.Terminal
	stop func()
}

// start starts a site.
func start(t *testing.T, client *dynamodb.Client, withSample bool) *site {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background()) // until it is stopped
	var out, log apptest.Terminal
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, &dynamo.Database{Client: client}, options{address: anyAddress, sample: withSample}, &out, &log)
	}()
	s := &site{t: t, out: &out, stop: func() {
		if ctx.Err() != nil {
			return
		}
		interrupt()
		select {
		case err := <-ended:
			assert.NoError(t, err)
		case <-time.After(patience):
			assert.Fail(t, "the server must stop when it is interrupted")
		}
	}}
	t.Cleanup(s.stop)
	require.Eventually(t, func() bool {
		_, after, serves := strings.Cut(out.String(), "Serving orders on ")
		s.url, _, _ = strings.Cut(after, " ")
		return serves
	}, patience, 10*time.Millisecond, "the server must say where it is: %s", &log)
	return s
}

// host returns the host and port of the site.
func (s *site) host() string { return strings.TrimPrefix(s.url, "http://") }

// post sends a command, and waits until the history shows it. It sends the command again until the
// ticket or delivery exists.
func (s *site) post(path, body string) {
	s.t.Helper()
	status := http.StatusNotFound
	for deadline := time.Now().Add(patience); status == http.StatusNotFound && time.Now().Before(deadline); {
		response, err := http.Post(s.url+path+"?wait=10", "application/json", strings.NewReader(body))
		require.NoError(s.t, err)
		require.NoError(s.t, response.Body.Close())
		status = response.StatusCode
	}
	require.Less(s.t, status, 300, path)
}

// order places an order of one dish for ada.
func (s *site) order(id, restaurant, dish string) {
	s.t.Helper()
	s.post("/orders", fmt.Sprintf(
		`{"orderId": %q, "consumerId": "ada", "restaurant": %q, "lines": [{"name": %q, "quantity": 2, "priceCents": 350}]}`, id, restaurant, dish))
}

// expectsLateOrders makes a user who places orders expect that the history does not have one of
// them yet when the page asks for it.
func (s *site) expectsLateOrders(u *browsertest.User) {
	u.Expects("status 404 of " + s.url + "/orders/")
}

// These are the texts of the page about an order, without the words of the filter.
func orderIs(status string) string   { return "Order\n" + status }
func kitchenIs(status string) string { return "Kitchen\n" + status }
func courierIs(status string) string { return "Courier\n" + status }
func isFocused(id string) string     { return fmt.Sprintf("document.activeElement.id === %q", id) }
func isOrderFocused(id string) string {
	return fmt.Sprintf("document.activeElement.dataset.order === %q", id)
}
