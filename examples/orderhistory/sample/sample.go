// Package sample fills an empty order history with sample data: the orders of three consumers in
// the last weeks, at all stages. It executes commands on the three services, as a client does, and
// the policies and the history follow.
package sample

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/policies"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Consumers are the consumers who have placed the orders.
var Consumers = []string{"ada", "bob", "carol"}

const (
	prefix  = "sample-" // prefix of the ids of orders
	orders  = 60
	writers = 8
	// patience limits the time for which one service waits for another.
	patience = time.Minute
)

// IsMissing reports whether there are no orders except those of the sample. An interruption may
// have left the sample incomplete.
func IsMissing(ctx context.Context, s *service.Service) (bool, error) {
	for head, err := range s.Journal().Heads(ctx, journal.HeadsQuery{AggregateType: order.Definition.Type()}) {
		if err != nil || !strings.HasPrefix(head.Aggregate.Value, prefix) {
			return false, err
		}
	}
	return true, nil
}

// Add makes the orders and returns their number, including those that exist already. A consumer
// must be running, since the services wait for one another. Several processes may call it at once,
// and it may be called again: it repeats no step, and completes the sample after an interruption.
func Add(ctx context.Context, s *service.Service, now time.Time) (int, error) {
	random := rand.New(rand.NewPCG(1, 1)) // the same orders each time
	work := make(chan func(context.Context) error)
	failed := make(chan error, writers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var working sync.WaitGroup
	for range writers {
		working.Add(1)
		go func() {
			defer working.Done()
			for do := range work {
				if err := do(ctx); err != nil {
					failed <- err
					cancel()
					return
				}
			}
		}()
	}
	placed := now
feed:
	// The newest first, so that a page fills from its top.
	for n := orders; n > 0; n-- {
		placed = placed.Add(-time.Duration(5+random.IntN(1200)) * time.Minute)
		p := plan(random, n, placed)
		select {
		case work <- func(ctx context.Context) error { return p.apply(ctx, s) }:
		case <-ctx.Done():
			break feed
		}
	}
	close(work)
	working.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return orders, ctx.Err()
	}
}

// stages are the stages at which an order can end.
const (
	pending = iota
	accepted
	preparing
	ready
	pickedUp
	delivered
	revised
	cancelled
	declined
	stages
)

type planned struct {
	id      string
	details order.Details
	stage   int
}

// plan returns the plan of an order. Only the latest orders remain unfinished.
func plan(random *rand.Rand, n int, placed time.Time) planned {
	menu := menus[random.IntN(len(menus))]
	p := planned{
		id:      fmt.Sprintf("%s%03d", prefix, n),
		details: order.Details{ConsumerID: Consumers[n%len(Consumers)], Restaurant: menu.restaurant, CreatedAt: placed},
		stage:   delivered,
	}
	for _, dish := range random.Perm(len(menu.dishes))[:1+random.IntN(3)] {
		line := menu.dishes[dish]
		line.Quantity = 1 + random.Int64N(3)
		p.details.Lines = append(p.details.Lines, line)
	}
	switch {
	case n > orders-2*stages:
		p.stage = n % stages
	case n%9 == 0:
		p.stage = cancelled
	case n%11 == 0:
		p.stage = declined
	}
	return p
}

func (p planned) apply(ctx context.Context, s *service.Service) error {
	steps := []func() error{func() error { return execute(ctx, s.Orders, p.id, "create", order.Create(p.details)) }}
	add := func(step func() error) { steps = append(steps, step) }
	switch p.stage {
	case cancelled:
		add(func() error { return execute(ctx, s.Orders, p.id, "cancel", order.Cancel("changed my mind")) })
	case declined:
		add(func() error { return execute(ctx, s.Tickets, p.id, "decline", ticket.Decline("sold out")) })
	case revised:
		again := append([]order.Line{{Name: "Mango Lassi", Quantity: 2, PriceCents: 390}}, p.details.Lines...)
		add(func() error { return execute(ctx, s.Orders, p.id, "revise", order.Revise(again)) })
	default:
		onTheWay := []func() error{
			func() error { return execute(ctx, s.Tickets, p.id, "accept", ticket.Accept) },
			func() error { return execute(ctx, s.Tickets, p.id, "prepare", ticket.Prepare) },
			func() error { return execute(ctx, s.Tickets, p.id, "finish", ticket.Finish) },
			func() error { return execute(ctx, s.Deliveries, p.id, "pick up", delivery.PickUp) },
			func() error { return execute(ctx, s.Deliveries, p.id, "deliver", delivery.Deliver) },
		}
		steps = append(steps, onTheWay[:p.stage]...)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("%s: %w", p.id, err)
		}
	}
	return nil
}

// execute executes a step once, even if several processes do so, and waits for an aggregate that a
// policy has to create first.
func execute[S any](ctx context.Context, to policies.Service[S], id, step string, decide aggregate.Decision[S]) error {
	pause := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(2*time.Millisecond), backoff.WithMaxInterval(100*time.Millisecond), backoff.WithMaxElapsedTime(patience))
	return backoff.Retry(func() error {
		_, err := to.Execute(ctx, id, decide, repository.WithCommandID("sample/"+id+"/"+step))
		var ofOrder order.Refused
		var ofTicket ticket.Refused
		var ofDelivery delivery.Refused
		switch {
		case errors.Is(err, ticket.Refused{}), errors.Is(err, delivery.Refused{}), errors.Is(err, journal.ErrConflict):
			return err
		case errors.As(err, &ofOrder), errors.As(err, &ofTicket), errors.As(err, &ofDelivery):
			// Another client has changed the order before the sample was complete.
			return nil
		case err != nil:
			return backoff.Permanent(err)
		}
		return nil
	}, backoff.WithContext(pause, ctx))
}
