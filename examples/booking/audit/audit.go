// Package audit compares what the booking service has done with the events of its shows: payments,
// mails, and views.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/booking/checkout"
	"github.com/millrace-dev/millrace/examples/booking/payment"
	"github.com/millrace-dev/millrace/examples/booking/service"
	"github.com/millrace-dev/millrace/examples/booking/simulated"
	"github.com/millrace-dev/millrace/examples/booking/views"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
)

// Audit compares the tables, the bank and the mails.
type Audit struct {
	Client *dynamodb.Client
	Shows  []string // the ids of all shows
	Bank   *simulated.Bank
	Post   *simulated.Post
}

// ErrWrong reports what cannot become right any more. Other errors of [Audit.Check] mean that
// something is not complete yet, or that a request has failed.
var ErrWrong = errors.New("wrong")

// Truth is the state of all shows, computed from their events.
type Truth struct {
	// Status of each booking: held, booked or released.
	Status   map[string]string
	amount   map[string]int
	customer map[string]string
	show     map[string]string
	seats    map[string][]string
	mails    map[string]string            // the recipients, by event id
	taken    map[string]map[string]string // the booking of each seat, by show
	wrong    []string
}

// Check returns the truth, and an error unless everything is complete and agrees with it.
func (a Audit) Check(ctx context.Context) (*Truth, error) {
	j, err := journal.Open(ctx, a.Client, journal.Config{Tables: journal.Tables{
		Journal: service.Prefix + "journal", Snapshot: service.Prefix + "snapshot", Checkpoint: service.Prefix + "checkpoint",
	}})
	if err != nil {
		return nil, err
	}
	t := &Truth{
		Status: map[string]string{}, amount: map[string]int{}, customer: map[string]string{}, show: map[string]string{},
		seats: map[string][]string{}, mails: map[string]string{}, taken: map[string]map[string]string{},
	}
	for _, show := range a.Shows {
		for e, err := range j.AllEvents(ctx, aggregate.ID{Type: "show", Value: show}) {
			if err != nil {
				return t, err
			}
			t.add(e)
		}
	}
	if len(t.wrong) > 0 {
		return t, fmt.Errorf("%w: %s", ErrWrong, strings.Join(t.wrong, "; "))
	}
	for _, check := range []func(context.Context, *journal.Journal, *Truth) error{a.checkouts, a.mails, a.views, a.money} {
		if err := check(ctx, j, t); err != nil {
			return t, err
		}
	}
	return t, nil
}

// add applies an event of a show, and records a seat with two bookings.
func (t *Truth) add(e *journal.Record) {
	var fields struct {
		Booking, Customer string
		Seats             []string
		Amount            int
	}
	if err := json.Unmarshal(e.Payload, &fields); err != nil {
		t.wrong = append(t.wrong, err.Error())
		return
	}
	b, id := fields.Booking, e.Aggregate.Value
	is := strings.TrimSuffix(strings.TrimPrefix(e.EventType, "show."), ".v1")
	if is == "scheduled" {
		t.taken[id] = map[string]string{}
		for _, s := range fields.Seats {
			t.taken[id][s] = ""
		}
		return
	}
	before := map[string]string{"held": "", "booked": "held", "released": "held"}
	if was, ok := before[is]; ok && t.Status[b] != was {
		t.wrong = append(t.wrong, fmt.Sprintf("booking %s is %s after it was %q", b, is, t.Status[b]))
	}
	for _, s := range fields.Seats {
		holder := t.taken[id][s]
		if is == "held" && holder != "" || is != "held" && holder != b {
			t.wrong = append(t.wrong, fmt.Sprintf("%s/%s is %s by %s, and %q has it", id, s, is, b, holder))
		}
		if t.taken[id][s] = b; is == "released" {
			t.taken[id][s] = ""
		}
	}
	if is == "held" {
		t.amount[b], t.customer[b], t.show[b], t.seats[b] = fields.Amount, fields.Customer, id, fields.Seats
	} else {
		t.mails[e.EventID] = fields.Customer
	}
	t.Status[b] = is
}

// money compares bookings with their payments, checkouts, and the bank.
func (a Audit) money(ctx context.Context, j *journal.Journal, t *Truth) error {
	payments, err := repository.New(j, payment.Definition, repository.Config{})
	if err != nil {
		return err
	}
	definition := checkout.Define(time.Minute)
	checkouts, err := repository.New(j, definition.Aggregate(), repository.Config{})
	if err != nil {
		return err
	}
	for b, status := range t.Status {
		p, err := payments.Load(ctx, b)
		if err != nil {
			return err
		}
		c, err := checkouts.Load(ctx, b)
		if err != nil {
			return err
		}
		paid := 0
		if status == "booked" {
			paid = t.amount[b]
		}
		switch {
		case status == "held" || !p.State.Status.Ended() || !definition.Ended(c.State) || c.State.Outcome != status:
			return fmt.Errorf("booking %s: show %s, payment %s, checkout %q", b, status, p.State.Status, c.State.Outcome)
		case a.Bank.Balance(b) != paid:
			return fmt.Errorf("booking %s is %s and %d were paid, payment %s", b, status, a.Bank.Balance(b), p.State.Status)
		}
	}
	return nil
}

// checkouts expects that every checkout has ended, and has nothing pending.
func (a Audit) checkouts(ctx context.Context, _ *journal.Journal, _ *Truth) error {
	backlog := process.NewBacklog(a.Client, service.Prefix+"process")
	for p, err := range backlog.OpenProcesses(ctx, process.BacklogQuery{}) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%s is open", p.Process)
	}
	for p, err := range backlog.Pending(ctx, process.BacklogQuery{}) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%s of %s is pending", p.Row, p.Process)
	}
	return nil
}

// mails expects one mail for each outcome.
func (a Audit) mails(_ context.Context, _ *journal.Journal, t *Truth) error {
	mails, _ := a.Post.Mails()
	sent := map[string]string{}
	for _, m := range mails {
		sent[m.Key] = m.To
	}
	switch {
	case len(sent) != len(mails):
		return fmt.Errorf("%w: %d mails are %d", ErrWrong, len(mails), len(sent))
	case !maps.Equal(t.mails, sent):
		return fmt.Errorf("%d mails, want %d", len(sent), len(t.mails))
	}
	return nil
}

// views compares the read models with the events.
func (a Audit) views(ctx context.Context, _ *journal.Journal, t *Truth) error {
	v := views.New(a.Client, service.Prefix)
	for _, show := range a.Shows {
		seats, err := v.SeatsOf(ctx, show)
		if err != nil {
			return err
		}
		for seat, b := range t.taken[show] {
			want := "free"
			if b != "" {
				want = t.Status[b]
			}
			if seats[seat] != want {
				return fmt.Errorf("seat %s of %s is %s in the view, want %s", seat, show, seats[seat], want)
			}
		}
	}
	want := map[string][]views.Booking{}
	for _, b := range slices.Sorted(maps.Keys(t.Status)) {
		booking := views.Booking{Booking: b, Show: t.show[b], Seats: strings.Join(t.seats[b], " "), Status: t.Status[b]}
		want[t.customer[b]] = append(want[t.customer[b]], booking)
	}
	for customer, want := range want {
		shown, err := v.BookingsOf(ctx, customer)
		if err != nil {
			return err
		}
		if !slices.Equal(shown, want) {
			return fmt.Errorf("the view of %s shows %v, want %v", customer, shown, want)
		}
	}
	return nil
}
