package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
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
	done, err := execute(r, s.Orders, body.OrderID, order.Create(details))
	switch refused := (order.Refused{}); {
	case errors.As(err, &refused):
		return rest.Reply{}, errExists
	case err != nil:
		return rest.Reply{}, err
	case done.Repeated && !places(details, done.State):
		return rest.Reply{}, errOtherOrder
	}
	reply := answer(s, r, order.Definition, body.OrderID, done)
	reply.Status, reply.Location = http.StatusCreated, "/orders/"+url.PathEscape(body.OrderID)
	return reply, nil
}

var (
	errExists     = errors.New("there is an order with this id already")
	errOtherOrder = errors.New("the Idempotency-Key belongs to another order: send the same order as before, or choose a new one")
	// a namespace, see RFC 9562
	ordersByKey = uuid.MustParse("7f0a3a4e-6a0c-4a43-9c0e-6d7a0e3b1f52")
)

// places reports whether an order can be the result of these details. Its lines may have been
// revised since.
func places(d order.Details, o order.Order) bool {
	return d.ConsumerID == o.ConsumerID && d.Restaurant == o.Restaurant && (o.Revision > 0 || slices.Equal(d.Lines, o.Lines))
}

// command returns the handler of a command, which makes a decision from a request.
func command[S any](
	s *server, to policies.Service[S], definition aggregate.Definition[S], decide func(*http.Request) (aggregate.Decision[S], error),
) func(*http.Request) (rest.Reply, error) {
	return func(r *http.Request) (rest.Reply, error) {
		decision, err := decide(r)
		if err != nil {
			return rest.Reply{}, err
		}
		id := r.PathValue("orderId")
		done, err := execute(r, to, id, decision)
		if err != nil {
			return rest.Reply{}, err
		}
		return answer(s, r, definition, id, done), nil
	}
}

const idempotencyKey = "Idempotency-Key"

// execute makes an aggregate decide, once for each command and key.
func execute[S any](
	r *http.Request, to policies.Service[S], id string, decide aggregate.Decision[S],
) (repository.Aggregate[S], error) {
	var once repository.Option
	if key := r.Header.Get(idempotencyKey); key != "" {
		// A key can be long, so use a hash. Ids of the policies' commands have no slash.
		once = repository.WithCommandID(fmt.Sprintf("client/%x", sha256.Sum256([]byte(path.Base(r.URL.Path)+"\x00"+key))))
	}
	return to.Execute(r.Context(), id, decide, once)
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
