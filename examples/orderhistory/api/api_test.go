package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/api"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

const curry = `{"orderId": %q, "consumerId": "ada", "restaurant": "Ajanta", "lines": [{"name": "Vindaloo", "quantity": 2, "priceCents": 1250}]}`

func TestAnOrderGoesThroughAllServicesAndShowsInTheHistory(t *testing.T) {
	t.Parallel()
	c := serve(t)

	created := c.post("/orders", fmt.Sprintf(curry, "first"))
	assert.Equal(t, http.StatusCreated, created.StatusCode)
	assert.Equal(t, "/orders/first", created.Header.Get("Location"))
	assert.JSONEq(t, `{"orderId": "first", "service": "order", "version": 1, "status": "APPROVAL_PENDING"}`, string(created.body))
	revised := c.post("/orders/first/revise", `{"lines": [{"name": "Korma", "quantity": 1, "priceCents": 1100}]}`)
	assert.Equal(t, uint64(2), decode[api.Accepted](t, revised).Version)
	c.settle()
	accepted := decode[api.Accepted](t, c.post("/tickets/first/accept", ""))
	assert.Equal(t, api.Accepted{OrderID: "first", Service: "ticket", Version: 3, Status: "ACCEPTED"}, accepted)
	c.settle()
	for _, command := range []string{"/deliveries/first/pick-up", "/deliveries/first/deliver", "/tickets/first/prepare", "/tickets/first/ready"} {
		require.Equal(t, http.StatusOK, c.post(command, "").StatusCode, command)
	}

	want := history.Order{
		OrderID: "first", ConsumerID: "ada", Restaurant: "Ajanta", Lines: []order.Line{{Name: "Korma", Quantity: 1, PriceCents: 1100}},
		TotalCents: 1100, CreationTime: noon.Add(time.Minute), Status: order.StatusApproved, TicketStatus: ticket.StatusReady,
		DeliveryStatus: delivery.StatusDelivered, Versions: history.Versions{Order: 3, Ticket: 5, Delivery: 3},
	}
	assert.Equal(t, want, c.shown("first"))
	assert.Equal(t, history.Page{Orders: []history.Order{want}}, decode[history.Page](t, c.get("/consumers/ada/orders")))
}

func TestTheKitchenAndTheConsumerCanEndAnOrder(t *testing.T) {
	t.Parallel()
	c := serve(t)
	c.post("/orders", fmt.Sprintf(curry, "declined"))
	c.post("/orders", fmt.Sprintf(curry, "cancelled"))
	require.Equal(t, http.StatusOK, c.post("/orders/cancelled/cancel", `{"reason": "too slow"}`).StatusCode)
	c.settle()
	require.Equal(t, http.StatusOK, c.post("/tickets/declined/decline", `{"reason": "sold out"}`).StatusCode)

	declined := c.shown("declined")
	assert.Equal(t, order.StatusRejected, declined.Status)
	assert.Equal(t, "sold out", declined.Reason)
	cancelled := c.shown("cancelled")
	assert.Equal(t, ticket.StatusCancelled, cancelled.TicketStatus)
	assert.Equal(t, "too slow", cancelled.Reason)
	assert.Equal(t, "the ticket is cancelled, which does not allow this", problem(t, c.post("/tickets/cancelled/accept", ""), http.StatusConflict))
}

func TestANameThatCannotBeReadIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	c := serve(t)
	blank := strings.Replace(fmt.Sprintf(curry, "first"), "Ajanta", "\u3000", 1)
	assert.Equal(t, "restaurant: it must not be blank", problem(t, c.post("/orders", blank), http.StatusBadRequest))
	overridden := strings.Replace(fmt.Sprintf(curry, "first"), "Vindaloo", "\u202eoolad", 1)
	assert.Equal(t, "dish 1, name: it has an invisible character (U+202E), remove it or type the name again",
		problem(t, c.post("/orders", overridden), http.StatusBadRequest))
}

func TestPagesAreFollowedByTheirToken(t *testing.T) {
	t.Parallel()
	c := serve(t)
	for _, id := range []string{"one", "two", "three"} {
		c.post("/orders", fmt.Sprintf(curry, id))
	}
	c.settle()
	c.post("/orders/two/cancel", "")
	c.settle()

	const first = "/consumers/ada/orders?pageSize=2&status=APPROVAL_PENDING&keyword=vind&since=2024-05-01&until=2024-05-01T12:30:00Z"
	page := decode[history.Page](t, c.get(first))
	require.Len(t, page.Orders, 2)
	assert.Equal(t, []string{"three", "one"}, []string{page.Orders[0].OrderID, page.Orders[1].OrderID})
	assert.Empty(t, page.NextToken)

	page = decode[history.Page](t, c.get("/consumers/ada/orders?pageSize=2"))
	require.NotEmpty(t, page.NextToken)
	page = decode[history.Page](t, c.get("/consumers/ada/orders?pageSize=2&pageToken="+page.NextToken))
	require.Len(t, page.Orders, 1)
	assert.Equal(t, "one", page.Orders[0].OrderID)
}

func TestACommandThatIsSentAgainWithItsKeyTakesEffectOnce(t *testing.T) {
	t.Parallel()
	c := serve(t)
	body := strings.Replace(curry, `"orderId": %q, `, "", 1)
	first := decode[api.Accepted](t, c.send(http.MethodPost, "/orders", body, "Idempotency-Key", "one"))
	again := decode[api.Accepted](t, c.send(http.MethodPost, "/orders", body, "Idempotency-Key", "one"))
	other := decode[api.Accepted](t, c.send(http.MethodPost, "/orders", body, "Idempotency-Key", "two"))
	assert.Equal(t, first, again, "the id must follow from the key")
	assert.NotEqual(t, first.OrderID, other.OrderID)

	cancel := "/orders/" + first.OrderID + "/cancel"
	for range 2 {
		a := decode[api.Accepted](t, c.send(http.MethodPost, cancel, "", "Idempotency-Key", "three"))
		assert.Equal(t, api.Accepted{OrderID: first.OrderID, Service: "order", Version: 2, Status: "CANCELLED"}, a)
	}
	problem(t, c.send(http.MethodPost, cancel, `{"reason": "another"}`, "Idempotency-Key", "three"), http.StatusUnprocessableEntity)
	problem(t, c.send(http.MethodPost, cancel, "", "Idempotency-Key", "four"), http.StatusConflict)
	cancelOther := "/orders/" + other.OrderID + "/cancel"
	cancelled := decode[api.Accepted](t, c.send(http.MethodPost, cancelOther, "", "Idempotency-Key", "two"))
	assert.Equal(t, "CANCELLED", cancelled.Status, "another command with the same key is another command")
	problem(t, c.send(http.MethodPost, cancelOther, "", "Idempotency-Key", strings.Repeat("é", 200)), http.StatusConflict)
}

func TestAKeyIsOneConsumersAndOneOrders(t *testing.T) {
	t.Parallel()
	c := serve(t)
	const naan, rice = `[{"name": "Naan", "quantity": 1, "priceCents": 350}]`, `[{"name": "Rice", "quantity": 1, "priceCents": 280}]`
	place := func(orderID, consumer, restaurant, lines string) answer {
		return c.send(http.MethodPost, "/orders", fmt.Sprintf(`{%s"consumerId": %q, "restaurant": %q, "lines": %s}`,
			orderID, consumer, restaurant, lines), "Idempotency-Key", "one")
	}
	adas := decode[api.Accepted](t, place("", "ada", "Ajanta", naan))
	bobs := decode[api.Accepted](t, place("", "bob", "Ajanta", naan))
	assert.NotEqual(t, adas.OrderID, bobs.OrderID, "bob must not get ada's order")
	assert.Equal(t, uint64(1), bobs.Version)

	const other = "the Idempotency-Key was used for another request: send the same body as before, or choose a new key"
	assert.Equal(t, other, problem(t, place("", "ada", "Ajanta", rice), http.StatusUnprocessableEntity))
	assert.Equal(t, other, problem(t, place("", "ada", "Chez Vin", naan), http.StatusUnprocessableEntity))
	byID := fmt.Sprintf(`"orderId": %q, `, adas.OrderID)
	assert.Equal(t, other, problem(t, place(byID, "bob", "Ajanta", naan), http.StatusUnprocessableEntity), "nor by its id")

	require.Equal(t, http.StatusOK, c.post("/orders/"+adas.OrderID+"/revise", `{"lines": `+rice+`}`).StatusCode)
	again := decode[api.Accepted](t, place("", "ada", "Ajanta", naan))
	assert.Equal(t, uint64(2), again.Version, "it is the order that was placed, whatever has become of it")
}

func TestACommandWaitsUntilTheHistoryShowsIt(t *testing.T) {
	t.Parallel()
	c := serve(t)
	a := decode[api.Accepted](t, c.post("/orders?wait=10", fmt.Sprintf(curry, "first")))
	require.NotNil(t, a.Shown)
	assert.True(t, *a.Shown)
	assert.Equal(t, uint64(1), decode[history.Order](t, c.get("/orders/first")).Versions.Order)
}

func TestACommandSucceedsThoughTheHistoryDoesNotShowIt(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{
		"it takes longer":   groups.ErrNotApplied,
		"the table is busy": fmt.Errorf("wait: %w", journal.ErrThrottled),
		"anything else":     errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serveWith(t, api.Config{
				Orders: stub[order.Order]{}, WaitShown: func(context.Context, aggregate.ID, uint64) error { return fault },
			})
			placed := c.post("/orders?wait=1", strings.Replace(curry, `"orderId": %q, `, "", 1))
			assert.Equal(t, http.StatusCreated, placed.StatusCode)
			assert.JSONEq(t, `{"orderId": "made.up", "service": "order", "version": 1, "status": "", "shown": false}`, string(placed.body))
			cancelled := c.post("/orders/made.up/cancel?wait=1", "")
			assert.Equal(t, http.StatusOK, cancelled.StatusCode)
			assert.Contains(t, string(cancelled.body), `"shown":false`)
		})
	}
}

func TestTheStreamSaysWhenAConsumersOrdersHaveChanged(t *testing.T) {
	t.Parallel()
	c := serve(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+"/consumers/ada/events", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	events := make(chan string)
	go func() {
		defer close(events)
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				events <- data
			}
		}
	}()
	next := func(when string) {
		t.Helper()
		select {
		case data, open := <-events:
			require.True(t, open, when)
			assert.JSONEq(t, `{"consumerId": "ada"}`, data)
		case <-time.After(patience):
			require.Fail(t, "an event must come "+when)
		}
	}
	next("at once")
	c.post("/orders", fmt.Sprintf(curry, "first"))
	next("for the order")
	shown := decode[history.Order](t, c.get("/orders/first"))
	assert.Equal(t, order.StatusApprovalPending, shown.Status, "the history must have it by then")
	c.settle()
	c.post("/tickets/first/accept", "")
	next("for the ticket")
}

func TestACommandThatIsNotAllowedIsAConflictWithTheReason(t *testing.T) {
	t.Parallel()
	c := serve(t)
	require.Equal(t, http.StatusCreated, c.post("/orders", fmt.Sprintf(curry, "first")).StatusCode)
	c.settle()
	c.post("/tickets/first/accept", "")
	c.settle()
	c.post("/deliveries/first/pick-up", "")

	assert.Equal(t, "there is an order with this id already", problem(t, c.post("/orders", fmt.Sprintf(curry, "first")), http.StatusConflict))
	assert.Equal(t, "the order is approved, which does not allow this", problem(t, c.post("/orders/first/cancel", ""), http.StatusConflict))
	assert.Equal(t, "the ticket is accepted, which does not allow this", problem(t, c.post("/tickets/first/ready", ""), http.StatusConflict))
	assert.Equal(t, "the delivery is picked up, which does not allow this", problem(t, c.post("/deliveries/first/pick-up", ""), http.StatusConflict))
	assert.Equal(t, "there is no such order, or not yet", problem(t, c.post("/orders/second/cancel", ""), http.StatusNotFound))
	assert.Equal(t, "there is no such ticket, or not yet", problem(t, c.post("/tickets/second/accept", ""), http.StatusNotFound))
	assert.Equal(t, "there is no such delivery, or not yet", problem(t, c.post("/deliveries/second/deliver", ""), http.StatusNotFound))
	assert.Equal(t, "the history has no such order, or not yet", problem(t, c.get("/orders/second"), http.StatusNotFound))
}

func TestWhatGoesWrongBehindTheAPIHasAStatusOfItsOwn(t *testing.T) {
	t.Parallel()
	for err, status := range map[error]int{
		fmt.Errorf("find: %w", journal.ErrThrottled):                      http.StatusServiceUnavailable,
		&journal.OutcomeUnknownError{Err: errors.New("connection reset")}: http.StatusGatewayTimeout,
		fmt.Errorf("find: %w", context.DeadlineExceeded):                  http.StatusGatewayTimeout,
		&journal.ConflictError{}:                                          http.StatusConflict,
		order.ErrInvalid:                                                  http.StatusBadRequest,
		errors.New("secret"):                                              http.StatusInternalServerError,
	} {
		t.Run(err.Error(), func(t *testing.T) {
			t.Parallel()
			c := stubbed(t, err)
			for _, a := range []answer{
				c.post("/orders", fmt.Sprintf(curry, "first")), c.post("/orders/first/cancel", ""), c.post("/tickets/first/accept", ""),
				c.post("/deliveries/first/deliver", ""), c.get("/orders/first"), c.get("/consumers/ada/orders"), c.get("/consumers/ada/events"),
			} {
				assert.NotContains(t, problem(t, a, status), "secret")
				assert.Equal(t, status == http.StatusServiceUnavailable, a.Header.Get("Retry-After") != "")
			}
		})
	}
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	well, ill := serve(t), serveWith(t, api.Config{
		Ready:  func(context.Context) error { return errors.New("no access to table secret") },
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	assert.JSONEq(t, `{"status": "alive"}`, string(well.get("/healthz").body))
	assert.JSONEq(t, `{"status": "ready"}`, string(well.get("/readyz").body))
	assert.JSONEq(t, `{"status": "alive"}`, string(ill.get("/healthz").body))
	notReady := ill.get("/readyz")
	assert.Equal(t, "the server is not ready, its log says why", problem(t, notReady, http.StatusServiceUnavailable))
	assert.Contains(t, log.String(), "no access to table secret")
	assert.NotEmpty(t, notReady.Header.Get("Retry-After"))
	assert.Equal(t, "up 1\n", string(ill.get("/metrics").body))
}

func TestThePageIsServedSafely(t *testing.T) {
	t.Parallel()
	c := stubbed(t, nil)
	page := c.get("/")
	require.Equal(t, http.StatusOK, page.StatusCode)
	assert.Contains(t, string(page.body), "<!doctype html>")
	assert.Contains(t, page.Header.Get("Content-Security-Policy"), "default-src 'self'")
	assert.Equal(t, "nosniff", page.Header.Get("X-Content-Type-Options"))
	assert.Equal(t, api.Description, c.get("/openapi.yaml").body)
	assert.Equal(t, http.StatusNotFound, c.get("/static/nothing.js").StatusCode)
}

func TestWhatIsNotThereIsAProblemToo(t *testing.T) {
	t.Parallel()
	c := stubbed(t, nil)
	problem(t, c.get("/nothing"), http.StatusNotFound)
	refused := c.send(http.MethodDelete, "/orders/first", "")
	problem(t, refused, http.StatusMethodNotAllowed)
	assert.Equal(t, "GET, HEAD", refused.Header.Get("Allow"))
}
