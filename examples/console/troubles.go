package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

const (
	// oddTopic is the name of a topic and of a consumer group.
	oddTopic = image
	// large has several hundred events.
	large       = "large-1"
	largeEvents = 320
	truncated   = "truncated-1"
	keptFrom    = 41
	deleted     = "deleted-1"
	regular     = 60
	destroyed   = "2" // the customer whose key was destroyed
	billed      = "1" // the card whose key the console does not have
)

// troubled returns the orders with faults of a kind.
func (s *shop) troubled(kind string) []string {
	switch kind {
	case blocked:
		return numbered(kind, 2)
	case parked, skipped:
		return append(numbered(kind, 6), kind+" "+s.odd)
	case unsent:
		return numbered(kind, 2)
	case overdue:
		return append(numbered(kind, 3), kind+" "+s.odd)
	}
	return numbered(kind, 1)
}

func numbered(kind string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("%s-%d", kind, i+1))
	}
	return ids
}

// addHistory writes the first events of the shop.
func (s *shop) addHistory(ctx context.Context) error {
	return errors.Join(
		s.addTroubledOrders(ctx), s.addUnpaidOrders(ctx), s.addLongOrders(ctx), s.addOddEvents(ctx), s.addPeople(ctx),
		// Regular orders come last, so that blocked aggregates are behind events of other orders.
		s.addRegularOrders(ctx),
	)
}

func (s *shop) addTroubledOrders(ctx context.Context) error {
	for _, kind := range []string{blocked, parked, skipped, stopping} {
		for _, id := range s.troubled(kind) {
			if err := s.order(ctx, id, Placed{Customer: "ada"}, LineAdded{Line{"pencil", 2, 100}}, Noted{"Leave it at the door. " + s.odd}); err != nil {
				return err
			}
		}
	}
	return nil
}

// order executes one command for each event.
func (s *shop) order(ctx context.Context, id string, list ...aggregate.Event[Order]) error {
	for _, e := range list {
		if _, err := s.orders.Execute(ctx, id, record(e)); err != nil {
			return err
		}
	}
	return nil
}

// addUnpaidOrders adds orders with one process each.
func (s *shop) addUnpaidOrders(ctx context.Context) error {
	now := time.Now()
	for kind, payBy := range map[string]time.Time{paid: now.Add(24 * time.Hour), unsent: now.Add(24 * time.Hour), overdue: now.Add(-time.Hour)} {
		for _, id := range s.troubled(kind) {
			if err := s.order(ctx, id, Placed{Customer: "ben", PayBy: payBy}, LineAdded{Line{"ink", 1, 100}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// addLongOrders adds an order with many events and snapshots, an order whose first events were
// removed, and a deleted order.
func (s *shop) addLongOrders(ctx context.Context) error {
	for id, lines := range map[string]int{large: largeEvents - 2, truncated: 60, deleted: 3} {
		if err := s.order(ctx, id, Placed{Customer: "cleo"}); err != nil {
			return err
		}
		for i := range lines {
			if err := s.order(ctx, id, LineAdded{Line{fmt.Sprintf("item %d", i%7), 1, 10 + i}}); err != nil {
				return err
			}
		}
		if err := s.order(ctx, id, Noted{strings.Repeat("This note is so long that it is compressed. ", 100)}); err != nil {
			return err
		}
	}
	if err := s.orders.Truncate(ctx, truncated, keptFrom, journal.RemoveOptions{}); err != nil {
		return err
	}
	d, err := s.orders.Load(ctx, deleted)
	if err != nil {
		return err
	}
	return s.orders.Delete(ctx, deleted, d.Version, journal.RemoveOptions{})
}

// addOddEvents adds texts that are executed as code if a page does not escape them.
func (s *shop) addOddEvents(ctx context.Context) error {
	if s.tag == "" {
		return nil
	}
	ctx = aggregate.ContextWithMetadata(ctx, aggregate.Metadata{
		aggregate.CorrelationIDKey: "visit " + image, script: image, link: link, curly: ending, "bytes": "\xff" + script,
	})
	if err := s.order(ctx, odd(), Placed{Customer: odd()}, Scanned{odd()}, LineAdded{Line{odd(), 1, 1}}); err != nil {
		return err
	}
	var messages []*message.Message
	for i, payload := range []string{script + image, `{"link": "` + link + `", "text": "` + ending + `"}`, "\xff\xfe" + script, ""} {
		msg := message.NewMessage(fmt.Sprintf("message %d %s", i, image), []byte(payload))
		msg.Metadata = message.Metadata{publisher.NameKey: image, publisher.AggregateIDKey: link, script: image}
		messages = append(messages, msg)
	}
	return s.Publisher().Publish(oddTopic, messages...)
}

// addPeople adds customers, one of whom has left, and a card that another service has encrypted.
func (s *shop) addPeople(ctx context.Context) error {
	for i, name := range []string{"Ada Lovelace", "Charles Babbage"} {
		decision := func(Customer) (aggregate.Events[Customer], error) {
			return aggregate.Events[Customer]{Registered{name}}, nil
		}
		if _, err := s.customers.Execute(ctx, fmt.Sprint(i+1), decision); err != nil {
			return err
		}
	}
	if err := s.secret.Destroy(ctx, aggregate.ID{Type: "customer", Value: destroyed}); err != nil {
		return err
	}
	vault, err := newSecret(ctx, s.client, "vault")
	if err != nil {
		return err
	}
	j, err := journal.Open(ctx, s.client, journal.Config{
		Tables: s.Journal().Config().Tables, Encodings: []journal.Encoding{only{"card", "vault", vault}}, Now: s.clock.Now,
	})
	if err != nil {
		return err
	}
	billing, err := repository.New(j, cards, repository.Config{})
	if err != nil {
		return err
	}
	_, err = billing.Execute(ctx, billed, func(Card) (aggregate.Events[Card], error) { return aggregate.Events[Card]{Issued{"4242"}}, nil })
	return err
}

func (s *shop) addRegularOrders(ctx context.Context) error {
	for i := range regular {
		visit := aggregate.ContextWithMetadata(ctx, aggregate.Metadata{aggregate.CorrelationIDKey: fmt.Sprintf("visit-%d", i)})
		id := fmt.Sprintf("order-%02d", i+1)
		if i == 0 {
			id = web + "-1"
		}
		if err := s.order(visit, id, Placed{Customer: "dora"}, LineAdded{Line{"paper", 1 + i, 5}}); err != nil {
			return err
		}
	}
	return nil
}

// addTroubles adds the faults that need a running shop, and waits until all faults are visible.
func (s *shop) addTroubles(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if err := errors.Join(s.join(ctx, "reports", false), s.join(ctx, "exports", true)); err != nil {
		return err
	}
	pauseSearch := func() error { return s.Groups().Of("search", "order").Pause(ctx) }
	if err := until(ctx, pauseSearch); err != nil { // the group may still be joining
		return err
	}
	return s.wait(ctx)
}

// join makes a member join a group, and then leave it or crash.
func (s *shop) join(ctx context.Context, group string, crash bool) error {
	proxy := dynamotest.OpenProxy(s.client)
	defer proxy.Close()
	j, err := journal.Open(ctx, proxy.Client(), journal.Config{Tables: s.Journal().Config().Tables})
	if err != nil {
		return err
	}
	name := "host-7/1"
	if s.tag != "" {
		name = "<img src=x onerror=owned=1>" // a name has at most 32 bytes
	}
	config := subscriber.Config{
		// The timeout is long enough to leave on a busy machine.
		Journal: j, ConsumerGroup: group, MemberName: name, Timing: subscriber.Timing{LeaseDuration: time.Minute}, CloseTimeout: 30 * time.Second,
	}
	if crash {
		// The lease ends soon after the crash, but not before it on a busy machine.
		config.Timing.LeaseDuration, config.CloseTimeout = time.Second, 100*time.Millisecond
	}
	sub, err := subscriber.NewSubscriber(config, nil)
	if err != nil {
		return err
	}
	if _, err := sub.Subscribe(ctx, "order"); err != nil {
		return err
	}
	if err := until(ctx, func() error {
		g, err := s.Groups().Of(group, "order").Status(ctx)
		if err == nil && (len(g.Members) == 0 || len(g.Free()) > 0) {
			err = fmt.Errorf("group %s has no member yet", group)
		}
		return err
	}); err != nil {
		return err
	}
	if crash {
		proxy.Close()
	}
	if err := sub.Close(); err != nil && !crash {
		return err
	}
	return nil
}

// until calls a function until it returns nil.
func until(ctx context.Context, holds func() error) error {
	var last error
	for {
		err := holds()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), last) // the error of this call is only the end of ctx
		}
		last = err
		pause(ctx, 20*time.Millisecond)
	}
}

// wait waits until all faults are visible.
func (s *shop) wait(ctx context.Context) error {
	for _, holds := range []func(context.Context) error{s.groupsAreReady, s.processesAreReady, s.modelsAreReady} {
		if err := until(ctx, func() error { return holds(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) groupsAreReady(ctx context.Context) error {
	for name, ids := range map[string][]string{"billing": s.troubled(blocked), "shipping": s.troubled(parked), "checkout": s.troubled(unsent)} {
		n := 0
		for _, err := range s.Groups().Of(name, "order").Behind(ctx, aggregate.ID{}) {
			if err != nil {
				return err
			}
			n++
		}
		if n != len(ids) {
			return fmt.Errorf("%d aggregates hold up %s, of %d", n, name, len(ids))
		}
	}
	n := 0
	for _, err := range s.Groups().Of("mails", "order").Skipped(ctx, aggregate.ID{}, 0) {
		if err != nil {
			return err
		}
		n++
	}
	if want := len(s.troubled(skipped)); n != want {
		return fmt.Errorf("%d events are skipped, of %d", n, want)
	}
	all, err := s.Groups().List(ctx)
	if err != nil {
		return err
	}
	for _, g := range all {
		if g.Name == "ledger" && g.Stopped == nil {
			return errors.New("the ledger is not stopped yet")
		}
		if g.Name == "exports" && (len(g.Members) != 1 || !g.Members[0].Dead) {
			return errors.New("the member of exports is not missed yet")
		}
		if g.Name == "reports" && len(g.Members) > 0 {
			return errors.New("the member of reports has not left yet")
		}
	}
	for _, name := range []string{"history", "labels"} {
		if err := s.Groups().WaitApplied(ctx, name, aggregate.ID{Type: "order", Value: fmt.Sprintf("order-%02d", regular)}, 2); err != nil {
			return err
		}
	}
	return s.Groups().WaitApplied(ctx, "labels", aggregate.ID{Type: "order", Value: web + "-1"}, 3)
}

func (s *shop) processesAreReady(ctx context.Context) error {
	failed, stored := 0, 0
	for p, err := range s.Backlog().Pending(ctx, process.BacklogQuery{Type: s.checkout.Type()}) {
		if err != nil {
			return err
		}
		if p.Timeout != "" && p.Failure != "" {
			failed++
		}
		if strings.HasPrefix(p.Process.Value, unsent) && len(p.Commands) > 0 {
			stored++
		}
	}
	if failed != len(s.troubled(overdue)) || stored != len(s.troubled(unsent)) {
		return fmt.Errorf("%d timeouts have failed, and %d commands are stored", failed, stored)
	}
	_, err := s.checkout.WaitEnded(ctx, s.troubled(paid)[0])
	return err
}

func (s *shop) modelsAreReady(ctx context.Context) error {
	all, err := s.prices.Generations(ctx)
	if err != nil {
		return err
	}
	for _, g := range all.Live {
		if err := s.prices.CatchUp(ctx, g, nil); err != nil {
			return err
		}
	}
	p, err := s.totals.Progress(ctx, rebuilt)
	if err == nil && (!p.Begun || p.Left == 0) {
		err = errors.New("the rebuild has not begun")
	}
	return err
}

// write writes an event every 0.3 seconds until ctx ends.
func (s *shop) write(ctx context.Context) error {
	for i := 0; ctx.Err() == nil; i++ {
		if err := s.order(ctx, fmt.Sprintf("live-%d", i/20), LineAdded{Line{"stamp", 1, i % 10}}); err != nil && ctx.Err() == nil {
			return err
		}
		pause(ctx, 300*time.Millisecond)
	}
	return nil
}
