// Package effects calls other services: a bank and a mail service. Both accept idempotency keys, so
// a repeated call has its effect once.
package effects

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/millrace-dev/millrace/examples/booking/payment"
	"github.com/millrace-dev/millrace/examples/booking/show"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// Bank charges customers. A repeated call with the same key returns the result of the first one.
type Bank interface {
	Charge(ctx context.Context, key string, amount int) (declined string, err error)
	Refund(ctx context.Context, key string) error
}

// Post sends mails. It sends one mail for each key.
type Post interface {
	Send(ctx context.Context, key, to, text string) error
}

// Payments returns the handlers that charge and refund payments.
func Payments(bank Bank, payments *repository.Repository[payment.Payment]) []cqrs.GroupEventHandler {
	record := func(ctx context.Context, id string, decide payment.Decision) error {
		_, err := payments.Execute(ctx, id, decide, repository.WithCommandID(cqrs.OriginalMessageFromCtx(ctx).UUID))
		if errors.As(err, new(*repository.RefusedError)) {
			// The reply was recorded before, or the payment has ended.
			err = nil
		}
		return err
	}
	return []cqrs.GroupEventHandler{
		cqrs.NewGroupEventHandler(func(ctx context.Context, e *payment.WasRequested) error {
			id := source(ctx)
			declined, err := bank.Charge(ctx, id, e.Amount)
			switch {
			case err != nil:
				return err
			case declined != "":
				return record(ctx, id, payment.Decline(declined))
			default:
				return record(ctx, id, payment.Capture())
			}
		}),
		cqrs.NewGroupEventHandler(func(ctx context.Context, _ *payment.RefundRequested) error {
			id := source(ctx)
			if err := bank.Refund(ctx, id); err != nil {
				return err
			}
			return record(ctx, id, payment.Refund())
		}),
	}
}

// Mails returns the handlers that mail the outcome of bookings to customers. The id of the event is
// the idempotency key of its mail.
func Mails(post Post) []cqrs.GroupEventHandler {
	send := func(ctx context.Context, to, text string, seats []string) error {
		return post.Send(ctx, cqrs.OriginalMessageFromCtx(ctx).UUID, to, fmt.Sprintf("%s: %s", text, strings.Join(seats, ", ")))
	}
	return []cqrs.GroupEventHandler{
		cqrs.NewGroupEventHandler(func(ctx context.Context, e *show.Booked) error {
			return send(ctx, e.Customer, "Your seats", e.Seats)
		}),
		cqrs.NewGroupEventHandler(func(ctx context.Context, e *show.Released) error {
			return send(ctx, e.Customer, "We could not book", e.Seats)
		}),
	}
}

// source returns the id of the aggregate of an event.
func source(ctx context.Context) string {
	id, _, _ := subscriber.AggregateFromContext(ctx)
	return id.Value
}
