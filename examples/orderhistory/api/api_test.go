package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/journal"
)

const curry = `{"orderId": %q, "consumerId": "ada", "restaurant": "Ajanta", "lines": [{"name": "Vindaloo", "quantity": 2, "priceCents": 1250}]}`

func TestAnOrderThatIsPlacedAndDeliveredShowsInTheHistory(t *testing.T) {
	t.Parallel()
	c := serve(t)

	created := c.post("/orders", fmt.Sprintf(curry, "first"))
	assert.Equal(t, http.StatusCreated, created.StatusCode)
	assert.Equal(t, "/orders/first", created.Header.Get("Location"))
	assert.JSONEq(t, `{"orderId": "first", "version": 1, "consumerId": "ada", "restaurant": "Ajanta", "createdAt": "2024-05-01T12:01:00Z",
		"lines": [{"name": "Vindaloo", "quantity": 2, "priceCents": 1250}], "status": "APPROVAL_PENDING"}`, string(created.body))
	for _, command := range []struct{ path, body string }{
		{"approve", ""},
		{"revise", `{"lines": [{"name": "Korma", "quantity": 1, "priceCents": 1100}]}`},
		{"pick-up", ""},
		{"deliver", ""},
	} {
		require.Equal(t, http.StatusOK, c.post("/orders/first/"+command.path, command.body).StatusCode, command.path)
	}

	want := history.Order{
		OrderID: "first", ConsumerID: "ada", Restaurant: "Ajanta", Lines: order.Lines{{Name: "Korma", Quantity: 1, PriceCents: 1100}},
		TotalCents: 1100, CreationTime: noon.Add(time.Minute), Status: order.StatusApproved, DeliveryStatus: order.DeliveryDelivered, Version: 5,
	}
	c.awaitVersion("first", 5)
	assert.Equal(t, want, decode[history.Order](t, c.get("/orders/first")))
	assert.Equal(t, history.Page{Orders: []history.Order{want}}, decode[history.Page](t, c.get("/consumers/ada/orders")))
}

func TestPagesAreFollowedByTheirToken(t *testing.T) {
	t.Parallel()
	c := serve(t)
	for _, id := range []string{"one", "two", "three"} {
		c.post("/orders", fmt.Sprintf(curry, id))
		c.awaitVersion(id, 1)
	}
	c.post("/orders/two/cancel", `{"reason": "too slow"}`)
	c.awaitVersion("two", 2)

	const first = "/consumers/ada/orders?pageSize=2&status=APPROVAL_PENDING&keyword=vind&since=2024-05-01&until=2024-05-01T12:30:00Z"
	page := decode[history.Page](t, c.get(strings.Replace(first, "pageSize=2", "pageSize=1", 1)))
	require.Len(t, page.Orders, 1)
	assert.Equal(t, "three", page.Orders[0].OrderID)
	page = decode[history.Page](t, c.get(first+"&pageToken="+page.NextToken))
	require.Len(t, page.Orders, 1)
	assert.Equal(t, "one", page.Orders[0].OrderID)
	assert.Empty(t, page.NextToken)

	assert.JSONEq(t, `{"orders": []}`, string(c.get("/consumers/nobody/orders").body))
}

// awaitVersion waits until the history has been told so many events of an order.
func (c client) awaitVersion(id string, version uint64) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		a := c.get("/orders/" + id)
		return a.StatusCode == http.StatusOK && decode[history.Order](c.t, a).Version >= version
	}, patience, 10*time.Millisecond, "the history must show version %d of %s", version, id)
}

func TestACommandThatIsNotAllowedIsAConflictWithTheReason(t *testing.T) {
	t.Parallel()
	c := serve(t)
	require.Equal(t, http.StatusCreated, c.post("/orders", fmt.Sprintf(curry, "first")).StatusCode)

	assert.Equal(t, "order exists already", problem(t, c.post("/orders", fmt.Sprintf(curry, "first")), http.StatusConflict))
	assert.Equal(t, "not allowed: cannot deliver an order that is APPROVAL_PENDING", problem(t, c.post("/orders/first/deliver", ""), http.StatusConflict))
	assert.Equal(t, "order not found", problem(t, c.post("/orders/second/approve", ""), http.StatusNotFound))
	assert.Contains(t, problem(t, c.get("/orders/second"), http.StatusNotFound), "order not found")
	assert.Contains(t, problem(t, c.post("/orders/"+strings.Repeat("x", 1100)+"/approve", ""), http.StatusBadRequest), "the limit is")
}

func TestAnOrderWithoutAnIDGetsOne(t *testing.T) {
	t.Parallel()
	c := serveWith(t, stub{}, stub{})
	created := c.post("/orders", fmt.Sprintf(curry, ""))
	assert.Equal(t, http.StatusCreated, created.StatusCode)
	assert.Equal(t, "/orders/made%20up", created.Header.Get("Location"))
}

func TestABodyThatCannotBeReadIsABadRequest(t *testing.T) {
	t.Parallel()
	c := serveWith(t, stub{}, stub{})
	for name, body := range map[string]string{
		"nothing":          "",
		"no JSON":          "{not json}",
		"a part":           `{"consumerId": "ada"`,
		"an unknown field": `{"price": 1}`,
		"a wrong type":     `{"consumerId": 1}`,
		"an array":         `[]`,
		"two documents":    `{} {}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			detail := problem(t, c.post("/orders", body), http.StatusBadRequest)
			assert.Contains(t, detail, "the body is not what this command takes: ")
		})
	}
	problem(t, c.post("/orders/first/revise", ""), http.StatusBadRequest)
	problem(t, c.post("/orders", `{"consumerId": "`+strings.Repeat("x", 300<<10)+`"}`), http.StatusRequestEntityTooLarge)
	assert.Equal(t, http.StatusOK, c.post("/orders/first/cancel", "").StatusCode, "a reason can be left out")
}

func TestABadFilterIsABadRequestWithTheReason(t *testing.T) {
	t.Parallel()
	c := serveWith(t, stub{}, history.NewDAO(nil, history.Config{})) // no request is made
	for query, reason := range map[string]string{
		"status=EATEN":                      `status is "EATEN"`,
		"pageSize=0":                        `pageSize is "0"`,
		"pageSize=many":                     `pageSize is "many"`,
		"pageSize=1000":                     "pageSize is 1000",
		"since=yesterday":                   `since is "yesterday"`,
		"until=2024-13-01":                  `until is "2024-13-01"`,
		"since=2024-05-02&until=2024-05-01": "until is not after since",
		"pagesize=1":                        "pagesize is not one of",
		"status=APPROVED&status=CANCELLED":  "status is given more than once",
		"pageToken=tomorrow":                "invalid page token",
		"keyword=%zz":                       "the query cannot be read",
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, problem(t, c.get("/consumers/ada/orders?"+query), http.StatusBadRequest), reason)
		})
	}
}

func TestWhatGoesWrongBehindTheAPIHasAStatusOfItsOwn(t *testing.T) {
	t.Parallel()
	for err, status := range map[error]int{
		fmt.Errorf("find: %w", journal.ErrThrottled):                      http.StatusServiceUnavailable,
		&journal.OutcomeUnknownError{Err: errors.New("connection reset")}: http.StatusGatewayTimeout,
		fmt.Errorf("find: %w", context.DeadlineExceeded):                  http.StatusGatewayTimeout,
		&journal.ConflictError{}:                                          http.StatusConflict,
		&aggregate.InvalidIDError{}:                                       http.StatusBadRequest,
		errors.New("secret"):                                              http.StatusInternalServerError,
	} {
		t.Run(err.Error(), func(t *testing.T) {
			t.Parallel()
			c := serveWith(t, stub{err}, stub{err})
			for _, a := range []answer{c.post("/orders/first/approve", ""), c.get("/orders/first"), c.get("/consumers/ada/orders")} {
				assert.NotContains(t, problem(t, a, status), "secret")
				assert.Equal(t, status == http.StatusServiceUnavailable, a.Header.Get("Retry-After") != "")
			}
		})
	}
}

func TestWhatIsNotThereIsAProblemToo(t *testing.T) {
	t.Parallel()
	c := serveWith(t, stub{}, stub{})
	problem(t, c.get("/nothing"), http.StatusNotFound)
	refused := c.send(http.MethodDelete, "/orders/first", "")
	problem(t, refused, http.StatusMethodNotAllowed)
	assert.Equal(t, "GET, HEAD", refused.Header.Get("Allow"))
}
