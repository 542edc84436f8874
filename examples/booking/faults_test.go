package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/booking/checkout"
	"github.com/millrace-dev/millrace/examples/booking/payment"
	"github.com/millrace-dev/millrace/examples/booking/service"
	"github.com/millrace-dev/millrace/examples/booking/views"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
)

var (
	seed  = flag.Uint64("booking.seed", 1, "the first seed of the tests with faults")
	seeds = flag.Uint64("booking.seeds", 1, "how many seeds to test for each layout")
)

const (
	shows     = 3
	seatsEach = 6
	customers = 8
	requests  = 5 // for each customer
)

func TestBookingsAreRightAmidFaultsCrashesAndRestarts(t *testing.T) {
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		for s := *seed; s < *seed+*seeds; s++ {
			t.Run(fmt.Sprintf("%v/%d", layout, s), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, layout, s)
				w.grow(3)
				w.schedule(shows, seatsEach)
				w.setCalm(false)
				calm := w.db.Storm(0.03)
				// A handler must not decide on a state that lacks the event that it handles.
				tear := w.db.Inject(dynamotest.Tear(dynamotest.For(30*time.Millisecond)), dynamotest.Chance(0.3))
				var buying sync.WaitGroup
				for c := range customers {
					buying.Add(1)
					go func() {
						defer buying.Done()
						w.buy(c)
					}()
				}
				for range 4 {
					w.replace()
				}
				buying.Wait()
				w.replace()
				calm()
				tear.Remove()
				w.setCalm(true)
				w.complete()
				w.end()
			})
		}
	}
}

// buy requests random seats, and sends each request twice.
func (w *world) buy(customer int) {
	for n := range requests {
		id := w.number(shows)
		var seats []string
		for range 1 + w.number(3) {
			seats = append(seats, seat(w.number(seatsEach)))
		}
		body := map[string]any{"customer": fmt.Sprintf("customer-%d", customer), "seats": seats}
		key := fmt.Sprintf("%d-%d", customer, n)
		path := "/shows/" + showID(id) + "/bookings"
		status, first := w.request(http.MethodPost, path, key, body)
		if !assert.Contains(w.t, []int{http.StatusAccepted, http.StatusConflict}, status, string(first)) || status == http.StatusConflict {
			continue
		}
		status, again := w.request(http.MethodPost, path, key, body)
		assert.Equal(w.t, http.StatusAccepted, status)
		assert.JSONEq(w.t, string(first), string(again))
	}
}

// complete waits until everything is right and complete.
func (w *world) complete() {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for wrong := w.audit(w.t.Context()); wrong != ""; wrong = w.audit(w.t.Context()) {
		select {
		case <-again.C:
		case <-ctx.Done():
			require.Fail(w.t, "it must come to rest", wrong)
		}
	}
	charges, bankCalls := w.bank.Charges()
	mails, postCalls := w.post.Mails()
	w.t.Logf("%d charges in %d calls, %d mails in %d calls", charges, bankCalls, len(mails), postCalls)
}

// truth is the state of all shows, computed from their events.
type truth struct {
	status   map[string]string // by booking: held, booked or released
	amount   map[string]int
	customer map[string]string
	show     map[string]string
	seats    map[string][]string
	mails    map[string]string // the recipients, by event id
	taken    map[string]string // by show and seat
	wrong    []string
}

// audit returns what is wrong or incomplete.
func (w *world) audit(ctx context.Context) string {
	j := w.inspect()
	r := truth{map[string]string{}, map[string]int{}, map[string]string{}, map[string]string{}, map[string][]string{}, map[string]string{}, map[string]string{}, nil}
	for n := range shows {
		for e, err := range j.AllEvents(ctx, aggregate.ID{Type: "show", Value: showID(n)}) {
			if err != nil {
				return err.Error()
			}
			r.add(e)
		}
	}
	require.Empty(w.t, r.wrong, "the shows")
	var wrong []string
	for _, check := range []func(context.Context, *journal.Journal, *truth) error{w.auditMoney, w.auditCheckouts, w.auditMails, w.auditViews} {
		if err := check(ctx, j, &r); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	return strings.Join(wrong, "; ")
}

// add applies an event of a show, and records a seat with two bookings.
func (r *truth) add(e *journal.Record) {
	var fields struct {
		Booking, Customer string
		Seats             []string
		Amount            int
	}
	if err := json.Unmarshal(e.Payload, &fields); err != nil {
		r.wrong = append(r.wrong, err.Error())
		return
	}
	b, id := fields.Booking, e.Aggregate.Value
	is := strings.TrimSuffix(strings.TrimPrefix(e.EventType, "show."), ".v1")
	before := map[string]string{"held": "", "booked": "held", "released": "held"}
	if was, ok := before[is]; ok && r.status[b] != was {
		r.wrong = append(r.wrong, fmt.Sprintf("booking %s is %s after it was %q", b, is, r.status[b]))
	}
	for _, s := range fields.Seats {
		place := id + "/" + s
		switch {
		case is == "scheduled":
			continue
		case is == "held" && r.taken[place] != "", is != "held" && r.taken[place] != b:
			r.wrong = append(r.wrong, fmt.Sprintf("%s is %s by %s, and %q has it", place, is, b, r.taken[place]))
		}
		if r.taken[place] = b; is == "released" {
			r.taken[place] = ""
		}
	}
	switch is {
	case "scheduled":
		return
	case "held":
		r.amount[b], r.customer[b], r.show[b], r.seats[b] = fields.Amount, fields.Customer, id, fields.Seats
	default:
		r.mails[e.EventID] = fields.Customer
	}
	r.status[b] = is
}

// auditMoney compares bookings with their payments, checkouts, and the bank.
func (w *world) auditMoney(ctx context.Context, j *journal.Journal, r *truth) error {
	payments, err := repository.New(j, payment.Definition, repository.Config{})
	if err != nil {
		return err
	}
	definition := checkout.Define(time.Minute)
	checkouts, err := repository.New(j, definition.Aggregate(), repository.Config{})
	if err != nil {
		return err
	}
	for b, status := range r.status {
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
			paid = r.amount[b]
		}
		switch {
		case status == "held" || !p.State.Status.Ended() || !definition.Ended(c.State) || c.State.Outcome != status:
			return fmt.Errorf("booking %s: show %s, payment %s, checkout %q", b, status, p.State.Status, c.State.Outcome)
		case w.bank.Balance(b) != paid:
			return fmt.Errorf("booking %s is %s and %d were paid, payment %s", b, status, w.bank.Balance(b), p.State.Status)
		}
	}
	return nil
}

// auditCheckouts expects that every checkout has ended, and has nothing pending.
func (w *world) auditCheckouts(ctx context.Context, _ *journal.Journal, _ *truth) error {
	backlog := process.NewBacklog(w.client(), service.Prefix+"process")
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

// auditMails expects one mail for each outcome.
func (w *world) auditMails(_ context.Context, _ *journal.Journal, r *truth) error {
	mails, _ := w.post.Mails()
	sent := map[string]string{}
	for _, m := range mails {
		sent[m.Key] = m.To
	}
	require.Len(w.t, sent, len(mails), "each mail once")
	if !maps.Equal(r.mails, sent) {
		return fmt.Errorf("%d mails, want %d", len(sent), len(r.mails))
	}
	return nil
}

// auditViews compares the read models with the events.
func (w *world) auditViews(ctx context.Context, _ *journal.Journal, r *truth) error {
	v := views.New(w.client(), service.Prefix)
	for n := range shows {
		seats, err := v.SeatsOf(ctx, showID(n))
		if err != nil {
			return err
		}
		for s := range seatsEach {
			want := "free"
			if b := r.taken[showID(n)+"/"+seat(s)]; b != "" {
				want = r.status[b]
			}
			if seats[seat(s)] != want {
				return fmt.Errorf("seat %s of %s is %s in the view, want %s", seat(s), showID(n), seats[seat(s)], want)
			}
		}
	}
	for _, customer := range slices.Compact(slices.Sorted(maps.Values(r.customer))) {
		shown, err := v.BookingsOf(ctx, customer)
		if err != nil {
			return err
		}
		var want []views.Booking
		for _, b := range slices.Sorted(maps.Keys(r.status)) {
			if r.customer[b] == customer {
				want = append(want, views.Booking{Booking: b, Show: r.show[b], Seats: strings.Join(r.seats[b], " "), Status: r.status[b]})
			}
		}
		if !slices.Equal(shown, want) {
			return fmt.Errorf("the view of %s shows %v, want %v", customer, shown, want)
		}
	}
	return nil
}
