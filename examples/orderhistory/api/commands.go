package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/internal/rest"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/policies"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Accepted is the reply to a command: the current aggregate.
type Accepted struct {
	OrderID string `json:"orderId"`
	// order, ticket or delivery, as in the versions of an order.
	Service string `json:"service"`
	Version uint64 `json:"version"`
	Status  string `json:"status"`
	// Whether the history shows the command's effect. Nil if the request did not wait for that.
	Shown *bool `json:"shown,omitempty"`
}

// create places an order. A client that may have to repeat the request chooses the id itself, or
// sends an Idempotency-Key.
func (s *server) create(r *http.Request) (rest.Reply, error) {
	var body struct {
		OrderID    string       `json:"orderId"`
		ConsumerID string       `json:"consumerId"`
		Restaurant string       `json:"restaurant"`
		Lines      []order.Line `json:"lines"`
	}
	once, err := once(r)
	if err != nil {
		return rest.Reply{}, err
	}
	if err := rest.Decode(r, &body); err != nil {
		return rest.Reply{}, err
	}
	switch key := r.Header.Get(idempotencyKey); {
	case body.OrderID != "":
	case key != "":
		// No consumer's id contains a zero byte, so different pairs make different ids.
		body.OrderID = uuid.NewSHA1(ordersByKey, []byte(body.ConsumerID+"\x00"+key)).String()
	default:
		body.OrderID = s.NewID()
	}
	details := order.Details{ConsumerID: body.ConsumerID, Restaurant: body.Restaurant, Lines: body.Lines, CreatedAt: s.Now()}
	done, err := s.Orders.Execute(r.Context(), body.OrderID, order.Create(details), once...)
	switch {
	case errors.As(err, new(order.Refused)):
		return rest.Reply{}, errExists
	case err != nil:
		return rest.Reply{}, err
	}
	reply := answer(s, r, order.Definition, body.OrderID, done)
	reply.Status, reply.Location = http.StatusCreated, "/orders/"+url.PathEscape(body.OrderID)
	return reply, nil
}

var (
	errExists = errors.New("there is an order with this id already")
	// a namespace, see RFC 9562
	ordersByKey = uuid.MustParse("7f0a3a4e-6a0c-4a43-9c0e-6d7a0e3b1f52")
)

// command returns the handler of a command, which makes a decision from a request.
func command[S any](
	s *server, to policies.Service[S], definition aggregate.Definition[S], decide func(*http.Request) (aggregate.Decision[S], error),
) func(*http.Request) (rest.Reply, error) {
	return func(r *http.Request) (rest.Reply, error) {
		once, err := once(r)
		if err != nil {
			return rest.Reply{}, err
		}
		decision, err := decide(r)
		if err != nil {
			return rest.Reply{}, err
		}
		id := r.PathValue("orderId")
		done, err := to.Execute(r.Context(), id, decision, once...)
		if err != nil {
			return rest.Reply{}, err
		}
		return answer(s, r, definition, id, done), nil
	}
}

const idempotencyKey = "Idempotency-Key"

// once returns the options to execute a request once for each command and key. The same key with
// another body is refused.
func once(r *http.Request) ([]repository.Option, error) {
	key := r.Header.Get(idempotencyKey)
	if key == "" {
		return nil, nil
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	// A key can be long, so use a hash. Ids of the policies' commands have no slash.
	id := fmt.Sprintf("client/%x", sha256.Sum256([]byte(path.Base(r.URL.Path)+"\x00"+key)))
	return []repository.Option{repository.WithCommandID(id), repository.WithCommandContent(body)}, err
}

func answer[S any](s *server, r *http.Request, definition aggregate.Definition[S], id string, done repository.Aggregate[S]) rest.Reply {
	accepted := Accepted{OrderID: id, Service: definition.Type(), Version: done.Version, Status: statusOf(done.State)}
	if seconds := r.URL.Query().Get("wait"); seconds != "" {
		shown := s.awaitShown(r.Context(), seconds, aggregate.ID{Type: definition.Type(), Value: id}, done.Version)
		accepted.Shown = &shown
	}
	return rest.Reply{Body: accepted}
}

// awaitShown returns false if the history takes longer or cannot be read. The command was executed,
// so that is not an error of the command.
func (s *server) awaitShown(ctx context.Context, seconds string, id aggregate.ID, version uint64) bool {
	n, _ := strconv.Atoi(seconds) // the description accepts only numbers
	ctx, cancel := context.WithTimeout(ctx, time.Duration(n)*time.Second)
	defer cancel()
	err := s.WaitShown(ctx, id, version)
	if err != nil && !errors.Is(err, groups.ErrNotApplied) {
		s.Logger.Error("Could not wait for the history", "aggregate", id.String(), "version", version, "error", err)
	}
	return err == nil
}

func statusOf(state any) string {
	switch state := state.(type) {
	case order.Order:
		return string(state.Status)
	case ticket.Ticket:
		return string(state.Status)
	case delivery.Delivery:
		return string(state.Status)
	}
	return ""
}

// always returns the decision of a command without a body.
func always[S any](decide aggregate.Decision[S]) func(*http.Request) (aggregate.Decision[S], error) {
	return func(*http.Request) (aggregate.Decision[S], error) { return decide, nil }
}

// withReason returns the decision of a command whose body may have a reason.
func withReason[S any](decide func(reason string) aggregate.Decision[S]) func(*http.Request) (aggregate.Decision[S], error) {
	return func(r *http.Request) (aggregate.Decision[S], error) {
		var body struct {
			Reason string `json:"reason"`
		}
		err := rest.Decode(r, &body)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return decide(body.Reason), err
	}
}

func revise(r *http.Request) (order.Decision, error) {
	var body struct {
		Lines []order.Line `json:"lines"`
	}
	err := rest.Decode(r, &body)
	return order.Revise(body.Lines), err
}
