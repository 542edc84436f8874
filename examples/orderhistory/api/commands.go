package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/millrace-dev/millrace/examples/orderhistory/order"
)

// maxBody is more than the largest order takes, in bytes.
const maxBody = 256 << 10

// accepted is the reply to a command: the order as it is now.
type accepted struct {
	OrderID string `json:"orderId"`
	Version uint64 `json:"version"`
	order.Order
}

// create places an order. A client that may have to send the request again chooses the id itself: the
// second time it is told that the order exists.
func (s *server) create(r *http.Request) (reply, error) {
	var body struct {
		OrderID    string      `json:"orderId"`
		ConsumerID string      `json:"consumerId"`
		Restaurant string      `json:"restaurant"`
		Lines      order.Lines `json:"lines"`
	}
	if err := decode(r, &body); err != nil {
		return reply{}, err
	}
	if body.OrderID == "" {
		body.OrderID = s.NewID()
	}
	answer, err := s.execute(r, body.OrderID, order.Create(order.Details{
		ConsumerID: body.ConsumerID, Restaurant: body.Restaurant, Lines: body.Lines, CreatedAt: s.Now(),
	}))
	answer.status, answer.location = http.StatusCreated, "/orders/"+url.PathEscape(body.OrderID)
	return answer, err
}

// command makes a decision about an order from a request.
func (s *server) command(decide func(*http.Request) (order.Decision, error)) func(*http.Request) (reply, error) {
	return func(r *http.Request) (reply, error) {
		d, err := decide(r)
		if err != nil {
			return reply{}, err
		}
		return s.execute(r, r.PathValue("id"), d)
	}
}

func (s *server) execute(r *http.Request, id string, d order.Decision) (reply, error) {
	o, err := s.Orders.Execute(r.Context(), id, d)
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusOK, body: accepted{OrderID: id, Version: o.Version, Order: o.State}}, nil
}

// decision is for commands without a body.
func decision(d order.Decision) func(*http.Request) (order.Decision, error) {
	return func(*http.Request) (order.Decision, error) { return d, nil }
}

func revise(r *http.Request) (order.Decision, error) {
	var body struct {
		Lines order.Lines `json:"lines"`
	}
	err := decode(r, &body)
	return order.Revise(body.Lines), err
}

// cancel may have a body with a reason.
func cancel(r *http.Request) (order.Decision, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	err := decode(r, &body)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return order.Cancel(body.Reason), err
}

func decode(r *http.Request, body any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(body)
	if err == nil && decoder.More() {
		err = errors.New("there is more after the JSON document")
	}
	var tooLarge *http.MaxBytesError
	if err == nil || errors.As(err, &tooLarge) {
		return err
	}
	return fmt.Errorf("%w: %w", &requestError{"the body is not what this command takes"}, err)
}
