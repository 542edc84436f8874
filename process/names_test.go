package process_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

// InvoicesDue sets and cancels timeouts for some invoices.
type InvoicesDue struct{ Set, Cancel []string }

func (InvoicesDue) EventType() string { return "invoices.due" }

// raw makes a name that no event can contain.
var raw = strings.NewReplacer("(ff)", "\xff")

// invoices is a manager of processes with a timeout for each invoice. It returns what fired so far.
func (w *world) invoices() (m *process.Manager[Saga], fired func() []string) {
	w.t.Helper()
	var all []string
	on := func(name string) process.Reaction[Saga] {
		return process.OnTimeout(name, func(_ Saga, in process.Input) (step, error) {
			all = append(all, fmt.Sprintf("%s: %q of %s", name, in.TimeoutKey, in.Timeout))
			return begun, nil
		})
	}
	m, err := process.New(w.j, w.client, process.Define(sagas,
		process.On(func(_ InvoicesDue, in process.Input) string { return in.Source.Value }, func(_ Saga, e InvoicesDue, _ process.Input) (step, error) {
			s := begun
			for n, name := range e.Set {
				s = s.SetTimeout(raw.Replace(name), deadline+time.Duration(n)*time.Millisecond)
			}
			for _, name := range e.Cancel {
				s = s.CancelTimeout(raw.Replace(name))
			}
			return s, nil
		}).Starts(),
		on("retry/"), on("retry/all"), on("retry/late/"), on("credit"),
	), w.config())
	require.NoError(w.t, err)
	return m, func() []string { w.mu.Lock(); defer w.mu.Unlock(); return all }
}

func TestAProcessHasATimeoutForEachKey(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m, fired := w.invoices()
	set := []string{"retry/i1", "retry/i2", "retry/i3/part", "retry/all", "retry/late/i1", "credit"}
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", InvoicesDue{Set: set})))
	require.NoError(t, m.Handle(event(t.Context(), "e2", "o1", InvoicesDue{Cancel: []string{"retry/i2", "retry/none"}})))
	var rows, names []string
	for _, p := range w.pending(process.BacklogQuery{Type: "saga", ID: "o1"}) {
		rows, names = append(rows, p.Row), append(names, p.Timeout)
	}
	assert.Equal(t, []string{"timeout/credit", "timeout/retry/all", "timeout/retry/i1", "timeout/retry/i3/part", "timeout/retry/late/i1"}, rows)
	assert.Equal(t, []string{"credit", "retry/all", "retry/i1", "retry/i3/part", "retry/late/i1"}, names)
	w.pass(deadline + time.Second)

	assert.Equal(t, 5, w.fire(m))

	assert.Equal(t, []string{
		`retry/: "i1" of retry/i1`, `retry/: "i3/part" of retry/i3/part`, `retry/all: "" of retry/all`,
		`retry/late/: "i1" of retry/late/i1`, `credit: "" of credit`,
	}, fired())
	assert.Empty(t, w.pending(process.BacklogQuery{}))
}

func TestKeysOfTimeoutsAreChecked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m, _ := w.invoices()
	for name, says := range map[string]string{
		"retry/":                            `timeout "retry/" has no key: append one`,
		"retry/late/":                       `timeout "retry/late/" has no key: append one`,
		"retry/" + strings.Repeat("a", 507): "has 513 bytes, with its key it can have 512",
		"retry/a\nb":                        "has a key that is not valid UTF-8 or has control characters",
		"retry/(ff)":                        "has a key that is not valid UTF-8 or has control characters",
		"credit/i1":                         `has no reaction to the timeout "credit/i1"`,
		"retries":                           `has no reaction to the timeout "retries"`,
	} {
		for _, e := range []InvoicesDue{{Set: []string{name}}, {Cancel: []string{name}}} {
			err := m.Handle(event(t.Context(), "e1", "o1", e))
			require.ErrorContains(t, err, says)
			assert.True(t, errors.Is(err, process.ErrInvalidStep) || errors.As(err, new(*process.UnknownTimeoutError)))
		}
	}
}

func TestAProcessHasAThousandTimeoutsAtMost(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 1, Layout: journal.Packed}))
	require.NoError(t, process.CreateTable(t.Context(), db.Client(), ""))
	w := &world{t: t, client: db.Client(), j: testjournal.Open(t, db.Client(), journal.Config{}), now: time.UnixMilli(1_700_000_000_000)}
	m, _ := w.invoices()
	handle := func(id string, e InvoicesDue) error { return m.Handle(event(t.Context(), id, "o1", e)) }
	keys := func(from, to int) (names []string) {
		for n := range to - from {
			names = append(names, fmt.Sprintf("retry/%04d", from+n))
		}
		return names
	}
	const each, limit = 80, 1000
	for n := 0; n < limit; n += each {
		require.NoError(t, handle(fmt.Sprint("set ", n), InvoicesDue{Set: keys(n, min(n+each, limit))}))
	}
	require.NoError(t, handle("moved", InvoicesDue{Set: keys(0, 3)}))

	var tooMany *process.TooManyTimeoutsError
	require.ErrorAs(t, handle("one more", InvoicesDue{Set: keys(limit, limit+1)}), &tooMany)
	assert.Equal(t, process.TooManyTimeoutsError{Process: aggregate.ID{Type: "saga", Value: "o1"}, Max: limit}, *tooMany)
	require.NoError(t, handle("in its place", InvoicesDue{Set: keys(limit, limit+1), Cancel: keys(0, 1)}))
	require.NoError(t, handle("a fixed name", InvoicesDue{Set: []string{"credit"}}))
	recording := db.Record()
	require.NoError(t, m.Handle(event(t.Context(), "other", "o2", InvoicesDue{Set: keys(0, 1)})))
	recording.Stop()
	reads, _ := recording.Units()
	assert.InDelta(t, 4, reads, 0.01, "a process with few events cannot have too many")
}
