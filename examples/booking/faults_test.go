package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/examples/booking/audit"
	"github.com/millrace-dev/millrace/examples/booking/service"
	"github.com/millrace-dev/millrace/journal"
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
				calm := w.Storm(0.03)
				// A handler must not decide on a state that lacks the event that it handles.
				tear := w.DB().Inject(dynamotest.Tear(dynamotest.For(30*time.Millisecond)), dynamotest.Chance(0.3))
				var buying sync.WaitGroup
				for c := range customers {
					buying.Add(1)
					go func() {
						defer buying.Done()
						w.buy(c)
					}()
				}
				for range 4 {
					w.Replace()
				}
				buying.Wait()
				last := w.Replace()
				calm()
				tear.Remove()
				w.complete(last.Service)
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

// complete waits until everything is handled, and checks that it is right.
func (w *world) complete(app *service.App) {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	require.NoError(w.t, app.Settle(ctx))
	a := audit.Audit{Client: w.DB().Client(), Bank: w.bank, Post: w.post}
	for n := range shows {
		a.Shows = append(a.Shows, showID(n))
	}
	_, err := a.Check(ctx)
	require.NoError(w.t, err)
	charges, bankCalls := w.bank.Charges()
	mails, postCalls := w.post.Mails()
	w.t.Logf("%d charges in %d calls, %d mails in %d calls", charges, bankCalls, len(mails), postCalls)
}
