package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/examples/orderhistory/api"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/journal"
)

func TestABodyThatTheDescriptionDoesNotAllowIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	c := stubbed(t, nil)
	line := func(line string) string {
		return fmt.Sprintf(`{"consumerId": "ada", "restaurant": "Ajanta", "lines": [%s]}`, line)
	}
	for name, body := range map[string]struct{ text, reason string }{
		"nothing":           {"", "the body: it is required"},
		"no JSON":           {"{not json}", "the body: it must be a JSON document"},
		"a part":            {`{"consumerId": "ada"`, "the body: it must be a JSON document"},
		"an array":          {`[]`, "the body: it must be an object"},
		"an unknown field":  {`{"price": 1}`, `the body: property "price" is unsupported`},
		"a field missing":   {`{"consumerId": "ada", "restaurant": "Ajanta"}`, "lines: it is missing"},
		"a wrong type":      {`{"consumerId": 1}`, "consumerId: it must be a string"},
		"a wrong id":        {`{"orderId": "a/b"}`, "orderId: it must be letters, digits and"},
		"no line":           {line(""), "dishes: there must be at least 1"},
		"a line of nothing": {line(`{"name": "Naan", "quantity": 0, "priceCents": 1}`), "dish 1, how many: it must be at least 1"},
		"half a dish":       {line(`{"name": "Naan", "quantity": 0.5, "priceCents": 1}`), "lines.0.quantity: it must be an integer"},
		"no restaurant":     {`{"restaurant": ""}`, "restaurant: it must not be empty"},
		"a long name":       {line(`{"name": "` + strings.Repeat("ä", 201) + `", "quantity": 1, "priceCents": 1}`), "dish 1, name: it must have at most 200 characters"},
		"a high price":      {`{"lines": [{"name": "Naan", "quantity": 1, "priceCents": 1}, {"name": "Naan", "quantity": 1, "priceCents": 1e9}]}`, "dish 2, price in cents: it must be at most 100000000"},
		"many dishes":       {line(strings.Repeat(`{"name": "Naan", "quantity": 1, "priceCents": 1},`, 100) + `{"name": "Naan", "quantity": 1, "priceCents": 1}`), "dishes: there must be at most 100"},
		"no price":          {line(`{"name": "Naan", "quantity": 1}`), "lines.0.priceCents: it is missing"},
		"two documents":     {line(`{"name": "Naan", "quantity": 1, "priceCents": 1}`) + "{}", "more data after the JSON document"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, problem(t, c.post("/orders", body.text), http.StatusBadRequest), body.reason)
		})
	}
	assert.Contains(t, problem(t, c.post("/orders/first/revise", ""), http.StatusBadRequest), "it is required")
	assert.Contains(t, problem(t, c.post("/orders/first/cancel", `{"why": ""}`), http.StatusBadRequest), `"why" is unsupported`)
	assert.Equal(t, http.StatusOK, c.post("/orders/first/cancel", "").StatusCode, "a reason can be left out")
	problem(t, c.post("/orders", `{"consumerId": "`+strings.Repeat("x", 300<<10)+`"}`), http.StatusRequestEntityTooLarge)
	form := c.send(http.MethodPost, "/orders", "{}", "Content-Type", "application/x-www-form-urlencoded")
	assert.Contains(t, problem(t, form, http.StatusUnsupportedMediaType), "the body must be application/json")
}

func TestABodyThatDoesNotComeInTimeIsNoFaultOfItsText(t *testing.T) {
	t.Parallel()
	// as a connection reports it
	late := iotest.ErrReader(fmt.Errorf("read: %w", os.ErrDeadlineExceeded))
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders", late)
	request.Header.Set("Content-Type", "application/json")
	reply := httptest.NewRecorder()
	handler(t, api.Config{}).ServeHTTP(reply, request)
	assert.Contains(t, problem(t, answer{reply.Result(), reply.Body.Bytes()}, http.StatusRequestTimeout), "did not come in time")
}

func TestAnotherSiteCannotCancelAnOrder(t *testing.T) {
	t.Parallel()
	c := stubbed(t, nil)
	// It needs no body, so a form can send it.
	const cancel = "/orders/first/cancel"
	assert.Equal(t, http.StatusOK, c.send(http.MethodPost, cancel, "", "Origin", c.base).StatusCode)
	refused := c.send(http.MethodPost, cancel, "", "Sec-Fetch-Site", "cross-site")
	assert.Contains(t, problem(t, refused, http.StatusForbidden), "another site")
	problem(t, c.send(http.MethodPost, cancel, "", "Origin", "https://evil.example"), http.StatusForbidden)
}

func TestAParameterThatTheDescriptionDoesNotAllowIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	// The client panics, because an invalid filter is refused without a request.
	c := serveWith(t, api.Config{History: history.NewOrderHistoryDao(struct{ journal.Client }{}, history.Config{})})
	for query, reason := range map[string]string{
		"status=EATEN":                        "status: it must be one of APPROVAL_PENDING, APPROVED, REJECTED, CANCELLED",
		"ticketStatus=EATEN":                  "ticketStatus: it must be one of AWAITING_ACCEPTANCE, ACCEPTED",
		"deliveryStatus=LOST":                 "deliveryStatus: it must be one of SCHEDULED, PICKED_UP",
		"pageSize=0":                          "pageSize: it must be at least 1",
		"pageSize=many":                       "pageSize: it must be of type [integer]",
		"pageSize=1000":                       "pageSize: it must be at most 100",
		"keyword=" + strings.Repeat("x", 101): "keyword: it must have at most 100 characters",
		"since=yesterday":                     "since: it must be a day (2006-01-02) or a time of RFC 3339",
		"until=2024-13-01":                    `until is "2024-13-01", which does not exist`,
		"since=2024-05-02&until=2024-05-01":   "until is not after since",
		"pagesize=1":                          "pagesize is not a parameter here",
		"status=APPROVED&status=CANCELLED":    "status is set more than once",
		"pageToken=tomorrow":                  "invalid page token",
		"keyword=%zz":                         "the query cannot be read",
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, problem(t, c.get("/consumers/ada/orders?"+query), http.StatusBadRequest), reason)
		})
	}
	assert.Contains(t, problem(t, c.get("/consumers/-/orders"), http.StatusBadRequest), "consumer: it must be letters, digits and")
	assert.Contains(t, problem(t, c.get("/consumers/a%20b/events"), http.StatusBadRequest), "consumer: it must be letters, digits and")
	assert.Contains(t, problem(t, c.post("/tickets/first/accept?wait=11", ""), http.StatusBadRequest), "wait: it must be at most 10")
	long := c.send(http.MethodPost, "/tickets/first/accept", "", "Idempotency-Key", strings.Repeat("x", 201))
	assert.Contains(t, problem(t, long, http.StatusBadRequest), "Idempotency-Key: it must have at most 200 characters")
	assert.Equal(t, http.StatusOK, c.get("/?status=EATEN&pageToken=tomorrow&color=red&color=blue").StatusCode, "the page says itself what is wrong")
	assert.Contains(t, problem(t, c.get("/openapi.yaml?color=red"), http.StatusBadRequest), "color is not a parameter here")
}
