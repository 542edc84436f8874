package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/examples/booking/audit"
	"github.com/millrace-dev/millrace/examples/booking/effects"
	"github.com/millrace-dev/millrace/examples/booking/simulated"
	"github.com/millrace-dev/millrace/examples/lambda/machine"
)

// The bank declines bookings of four seats, and is too slow for those of three.
const (
	price   = 1000
	slow    = 3 * price
	limit   = slow
	perShow = 20
	workers = 4
)

// slowBank does not answer a request about a slow payment until some time after the first one.
type slowBank struct {
	effects.Bank
	until time.Duration

	mu    sync.Mutex
	first map[string]time.Time
}

// Charge implements [effects.Bank].
func (b *slowBank) Charge(ctx context.Context, key string, amount int) (declined string, err error) {
	if amount == slow && b.early(key) {
		return "", errors.New("the bank is slow")
	}
	return b.Bank.Charge(ctx, key, amount)
}

func (b *slowBank) early(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == nil {
		b.first = map[string]time.Time{}
	}
	if b.first[key].IsZero() {
		b.first[key] = time.Now()
	}
	return time.Since(b.first[key]) < b.until
}

func (w *world) showID(n int) string { return fmt.Sprintf("show-%d-%d", w.seed, n) }

func (w *world) number(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// buy makes the bookings. It kills processes meanwhile, if that is configured.
func (w *world) buy(ctx context.Context) error {
	buying, ctx := errgroup.WithContext(ctx)
	if w.kills {
		killing, stop := context.WithCancel(ctx)
		var killers sync.WaitGroup
		defer killers.Wait()
		defer stop()
		// A killed burst keeps others from its shards until its time-out, so wait about that long.
		for function, most := range map[*machine.Function]time.Duration{w.api: time.Second, w.consumer: w.timeout} {
			killers.Add(1)
			go func() {
				defer killers.Done()
				w.kill(killing, function, most)
			}()
		}
	}
	buying.SetLimit(workers)
	for n := range w.bookings {
		if n%perShow == 0 {
			if err := w.scheduleShow(ctx, n/perShow); err != nil {
				return errors.Join(err, buying.Wait())
			}
		}
		if n > 0 && n%500 == 0 {
			mails, _ := w.post.Mails()
			w.printf("%d bookings, %d mails\n", n, len(mails))
		}
		buying.Go(func() error { return w.book(ctx, n) })
	}
	return buying.Wait()
}

// kill kills the process of an invocation now and then, at most after the given pause.
func (w *world) kill(ctx context.Context, f *machine.Function, most time.Duration) {
	for ctx.Err() == nil {
		timer := time.NewTimer(time.Duration(w.number(int(most))))
		select {
		case <-timer.C:
			f.Kill(w.number)
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (w *world) scheduleShow(ctx context.Context, n int) error {
	seats := make([]string, 4*perShow)
	for s := range seats {
		seats[s] = seat(s)
	}
	_, err := w.request(ctx, http.MethodPut, "/shows/"+w.showID(n), nil, map[string]any{"price": price, "seats": seats},
		func(status int, _ string) bool {
			// A request whose process was killed may have scheduled it.
			return status == http.StatusCreated || status == http.StatusConflict
		})
	return err
}

func seat(n int) string { return fmt.Sprintf("%c%d", 'A'+n/10, n%10+1) }

// book books one to four seats that no one else wants. Some customers look at their bookings.
func (w *world) book(ctx context.Context, n int) error {
	first, customer := n%perShow*4, fmt.Sprint("customer-", n)
	var seats []string
	for s := range []int{1, 1, 1, 1, 2, 2, 2, 2, 3, 4}[w.number(10)] {
		seats = append(seats, seat(first+s))
	}
	began := time.Now()
	reply, err := w.request(ctx, http.MethodPost, "/shows/"+w.showID(n/perShow)+"/bookings", http.Header{"Idempotency-Key": {customer}},
		map[string]any{"customer": customer, "seats": seats},
		func(status int, _ string) bool { return status == http.StatusAccepted })
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.accepted[customer] = time.Now()
	w.replies = append(w.replies, time.Since(began))
	w.mu.Unlock()
	w.tell("%s holds %s", customer, strings.Join(seats, ", "))
	if n%5 != 0 {
		return nil
	}
	// The query waits until the view shows the booking.
	_, err = w.request(ctx, http.MethodGet, "/customers/"+customer+"/bookings", http.Header{consistency.Header: reply[consistency.Header]}, nil,
		func(status int, body string) bool {
			return status == http.StatusOK && strings.Contains(body, customerSeats(seats))
		})
	return err
}

func customerSeats(seats []string) string { return `"seats":"` + strings.Join(seats, " ") + `"` }

// request sends a request until the reply is as expected. A killed process is a 502, a process that
// is busy a 429 or 503.
func (w *world) request(ctx context.Context, method, path string, header http.Header, body any, expected func(status int, body string) bool) (http.Header, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		request, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(encoded))
		if err != nil {
			return nil, err
		}
		request.Header = header
		status, reply := "", []byte(nil)
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			status = response.Status
			reply, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
			switch {
			case err != nil: // the process was killed while it replied
			case expected(response.StatusCode, string(reply)):
				return response.Header, nil
			case response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError:
				return nil, fmt.Errorf("%s %s: %s: %s", method, path, status, reply)
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%s %s: %s %s: %w", method, path, status, reply, errors.Join(err, context.Cause(ctx)))
		}
	}
}

func (w *world) sent(m simulated.Mail) {
	w.mu.Lock()
	if at, known := w.accepted[m.To]; known {
		w.mailed[m.To] = time.Since(at)
	}
	w.mu.Unlock()
	w.tell("mail to %s: %s", m.To, m.Text)
}

// tell prints a line, if there are not too many.
func (w *world) tell(format string, args ...any) {
	if w.bookings <= 50 {
		w.printf(format+"\n", args...)
	}
}

func (w *world) printf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.out, format, args...)
}

func (w *world) report(truth *audit.Truth, stats map[string]machine.Stats, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := map[string]int{}
	for _, status := range truth.Status {
		count[status]++
	}
	mails, calls := w.post.Mails()
	var mailed []time.Duration
	for _, d := range w.mailed {
		mailed = append(mailed, d)
	}
	fmt.Fprintf(w.out, "\n%d bookings in %s: %d booked, %d released; %d mails in %d calls\n",
		w.bookings, took.Round(time.Millisecond), count["booked"], count["released"], len(mails), calls)
	fmt.Fprintf(w.out, "replies: %s; mails after them: %s\n", times(w.replies), times(mailed))
	for reason, records := range w.dropped {
		fmt.Fprintf(w.out, "%d records of the stream were dropped: %s\n", records, reason)
	}
	for _, name := range []string{api, consumer} {
		s := stats[name]
		fmt.Fprintf(w.out, "%s: %d invocations, %d throttled, errors %v, %d kills; cold starts: %s\n",
			name, s.Invocations, s.Throttles, s.Errors, s.Kills, times(s.Starts))
	}
	fmt.Fprintln(w.out, "Everything is right.")
}

func times(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	slices.Sort(d)
	at := func(p int) time.Duration { return d[(len(d)-1)*p/100].Round(time.Millisecond) }
	return fmt.Sprintf("%d, p50 %s, p99 %s, max %s", len(d), at(50), at(99), at(100))
}
