package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/examples/internal/rest"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
)

func (s *server) findOrder(r *http.Request) (rest.Reply, error) {
	found, err := s.History.FindOrder(r.Context(), r.PathValue("orderId"))
	return rest.Reply{Body: found}, err
}

func (s *server) findOrderHistory(r *http.Request) (rest.Reply, error) {
	filter, err := filterOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := s.History.FindOrderHistory(r.Context(), r.PathValue("consumerId"), filter)
	return rest.Reply{Body: page}, err
}

func filterOf(r *http.Request) (filter history.Filter, err error) {
	query := r.URL.Query()
	filter = history.Filter{
		Status: order.Status(query.Get("status")), TicketStatus: ticket.Status(query.Get("ticketStatus")),
		DeliveryStatus: delivery.Status(query.Get("deliveryStatus")),
		Keyword:        query.Get("keyword"), PageToken: query.Get("pageToken"),
	}
	if filter.Since, err = timeOf("since", query.Get("since")); err != nil {
		return filter, err
	}
	if filter.Until, err = timeOf("until", query.Get("until")); err != nil {
		return filter, err
	}
	if size := query.Get("pageSize"); size != "" {
		if filter.PageSize, err = strconv.Atoi(size); err != nil {
			return filter, rest.BadRequest("pageSize: %w", err)
		}
	}
	return filter, nil
}

// timeOf parses a day, which begins at midnight UTC, or a time. The description accepts days that
// do not exist, such as 31 April.
func timeOf(field, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &history.FilterError{Field: field, Reason: fmt.Sprintf("is %q, which does not exist", value)}
}

// change is the data of an event. It does not say what has changed: a page then repeats its query,
// with its filter.
type change struct {
	ConsumerID string `json:"consumerId"`
}

func (s *server) events(w http.ResponseWriter, r *http.Request) error {
	consumerID := r.PathValue("consumerId")
	return s.Feed.Serve(w, r, consumerID, func(context.Context) (live.Update, error) {
		return live.Update{Name: "orders", Data: change{consumerID}}, nil
	})
}

// explain returns the status and detail for errors of the example.
func explain(err error) (status int, detail string, ok bool) {
	var ofOrder order.Refused
	var ofTicket ticket.Refused
	var ofDelivery delivery.Refused
	switch {
	case errors.Is(err, order.ErrInvalid), errors.As(err, new(order.NameError)), errors.Is(err, history.ErrInvalidFilter), errors.Is(err, projection.ErrPageToken):
		return http.StatusBadRequest, err.Error(), true
	case errors.Is(err, errMediaType):
		return http.StatusUnsupportedMediaType, err.Error(), true
	case errors.Is(err, errExists):
		return http.StatusConflict, err.Error(), true
	case errors.As(err, new(*repository.CommandMismatchError)):
		return http.StatusUnprocessableEntity, "the Idempotency-Key was used for another request: send the same body as before, or choose a new key", true
	case errors.Is(err, history.ErrNotFound):
		return http.StatusNotFound, "the history has no such order, or not yet", true
	case errors.Is(err, errNotReady):
		// Any client may ask, and the reason is only for the log.
		return http.StatusServiceUnavailable, errNotReady.Error(), true
	case errors.As(err, &ofOrder):
		return refusal("order", string(ofOrder.Status))
	case errors.As(err, &ofTicket):
		return refusal("ticket", string(ofTicket.Status))
	case errors.As(err, &ofDelivery):
		return refusal("delivery", string(ofDelivery.Status))
	}
	return 0, "", false
}

func refusal(what, status string) (int, string, bool) {
	if status == "" {
		return http.StatusNotFound, "there is no such " + what + ", or not yet", true
	}
	status = strings.ToLower(strings.ReplaceAll(status, "_", " "))
	return http.StatusConflict, "the " + what + " is " + status + ", which does not allow this", true
}

var errNotReady = errors.New("the server is not ready, its log says why")

// health reports that the process runs.
func (s *server) health(*http.Request) (rest.Reply, error) {
	return rest.Reply{Body: map[string]string{"status": "alive"}}, nil
}

// readiness reports whether the process can serve requests.
func (s *server) readiness(r *http.Request) (rest.Reply, error) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		return rest.Reply{}, fmt.Errorf("%w: %w", errNotReady, err)
	}
	return rest.Reply{Body: map[string]string{"status": "ready"}}, nil
}
