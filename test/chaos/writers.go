package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/draw"
)

// writers commit random events to random aggregates, and remember the acknowledged ones.
type writers struct {
	journal    *journal.Journal
	repository *repository.Repository[state]
	pause      time.Duration // average pause of each writer between commits
	tokens     atomic.Uint64

	mu           sync.Mutex
	slots        []slot
	acknowledged map[place]uint64 // the token of each event
	seen         map[string]int
}

// slot is an aggregate that is being written to. When it has enough events, a new aggregate takes
// its place, so that rows stay small and there are always first events.
type slot struct {
	generation int
	limit      uint64
}

type place struct {
	thing  string
	number uint64
}

const (
	slots   = 24
	workers = 6
	// mostEvents is the size of a large commit.
	mostEvents = 30
)

func newWriters(j *journal.Journal, pause time.Duration) (*writers, error) {
	r, err := repository.New(j, things, repository.Config{Cache: slots})
	if err != nil {
		return nil, err
	}
	w := &writers{journal: j, repository: r, pause: pause, acknowledged: map[place]uint64{}, seen: map[string]int{}}
	for range slots {
		w.slots = append(w.slots, slot{limit: 30})
	}
	return w, nil
}

// run writes until the time is over, or ctx ends.
func (w *writers) run(ctx context.Context, seed uint64, until time.Time) error {
	errs := make(chan error, workers)
	for n := range workers {
		go func() {
			random := draw.New(seed, uint64(100+n))
			errs <- w.work(ctx, random, until)
		}()
	}
	var all error
	for range workers {
		all = errors.Join(all, <-errs)
	}
	return all
}

func (w *writers) work(ctx context.Context, random *rand.Rand, until time.Time) error {
	for time.Now().Before(until) {
		if err := w.commit(ctx, random); err != nil {
			return err
		}
		if !retry.Sleep(ctx, draw.UpTo(random, 2*w.pause)) {
			return ctx.Err()
		}
	}
	return nil
}

// commit writes some events to a random aggregate. A conflict with another writer is not an error.
func (w *writers) commit(ctx context.Context, random *rand.Rand) error {
	number := random.IntN(slots)
	now := w.slot(number)
	thing := fmt.Sprintf("%d.%d", number, now.generation)
	events := w.events(random)
	var version uint64
	var err error
	if random.IntN(4) == 0 {
		version, err = w.appendTo(ctx, thing, events)
	} else {
		var after repository.Aggregate[state]
		after, err = w.repository.Execute(ctx, thing, func(state) (aggregate.Events[state], error) { return events, nil })
		version = after.Version
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, journal.ErrConflict), errors.Is(err, journal.ErrOutcomeUnknown):
		w.seen["conflicts and unknown outcomes"]++ // the journal shows the result
		return nil
	case err != nil:
		return fmt.Errorf("commit to %s: %w", thing, err)
	}
	for i, e := range events {
		event, _ := e.(happened)
		w.acknowledged[place{thing, version - uint64(len(events)-1-i)}] = event.Token
	}
	w.seen["commits"]++
	if version >= now.limit && w.slots[number] == now {
		w.slots[number] = slot{generation: now.generation + 1, limit: 20 + random.Uint64N(200)}
	}
	return nil
}

func (w *writers) slot(number int) slot {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots[number]
}

// events draws usually few small events, and sometimes many or large ones.
func (w *writers) events(random *rand.Rand) (events aggregate.Events[state]) {
	count, size := 1+random.IntN(4), random.IntN(100)
	switch random.IntN(20) {
	case 0:
		count = 1 + random.IntN(mostEvents)
	case 1:
		size = random.IntN(20_000)
	}
	for range count {
		events = append(events, happened{Token: w.tokens.Add(1), Amount: random.IntN(1000), Text: strings.Repeat("x", size)})
	}
	return events
}

// appendTo writes directly to the journal.
func (w *writers) appendTo(ctx context.Context, thing string, events aggregate.Events[state]) (version uint64, err error) {
	id, err := things.ID(thing)
	if err != nil {
		return 0, err
	}
	expected, err := w.journal.Version(ctx, id)
	if err != nil && !errors.Is(err, journal.ErrNotFound) {
		return 0, err
	}
	c := storage.Commit{Aggregate: id, Expected: expected}
	for _, e := range events {
		encoded, err := things.Encode(e)
		if err != nil {
			return 0, err
		}
		c.Events = append(c.Events, storage.Event{Type: encoded.Type, Payload: encoded.Payload})
	}
	receipt, err := w.journal.Internal().Append(ctx, c)
	return receipt.Version, err
}

// history reads the journal by keys, not by the tail, and compares it with the acknowledged events.
func (w *writers) history(ctx context.Context) (history, []Finding, error) {
	h := history{}
	for head, err := range w.journal.Heads(ctx, journal.HeadsQuery{AggregateType: topic}) {
		if err != nil {
			return nil, nil, fmt.Errorf("read the heads: %w", err)
		}
		var events []written
		for r, err := range w.journal.Events(ctx, head.Aggregate, 1, head.Version) {
			if err != nil {
				return nil, nil, fmt.Errorf("read %s: %w", head.Aggregate, err)
			}
			var e happened
			if err := aggregate.JSON.Unmarshal(r.Payload, &e); err != nil {
				return nil, nil, fmt.Errorf("read event %d of %s: %w", r.Number, r.Aggregate, err)
			}
			events = append(events, written{e.Token, e.Amount})
		}
		h[head.Aggregate.Value] = events
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return h, checkAcknowledged(h, w.acknowledged), nil
}
