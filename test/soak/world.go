package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/draw"
)

// World is one database with writers and faults, all drawn from Seed and Number.
type World struct {
	Seed, Number uint64
	// Client is for an empty database that nobody else uses. If it is nil the world makes its own,
	// on dynamotest, with all faults of that; otherwise connections break and nothing else goes
	// wrong.
	Client *dynamodb.Client
	// Commands is how many each writer executes. Default: 250.
	Commands int
	// Layout is drawn if it is empty.
	Layout journal.Layout

	tamper   func(context.Context, *dynamodb.Client) error // before it is judged
	patience time.Duration                                 // see stuckAfter
}

// freeEvery is how many worlds there are for each one whose writers run freely.
const freeEvery = 8

// layouts are those that runs draw from.
var layouts = []journal.Layout{journal.Classic, journal.Packed}

// stuckAfter is for how long no command has to begin in a world until it is given up. A command
// takes milliseconds, or seconds where many worlds share two processors.
const stuckAfter = 5 * time.Minute

// Report is what came of a world.
type Report struct {
	Commits, Events int // that are in the journal
	Findings        []Finding
	// Seen is how often each command, and each way in which one ended, came up.
	Seen map[string]int
}

// running is a world under way.
type running struct {
	World
	truth   *truth
	turns   *turns
	memory  *dynamotest.DB // nil on another database
	now     func() time.Time
	window  int // aggregates that commands go to at a time
	span    int // commands until the window moves on by one, and so the length of a history
	heavy   bool
	network draw.Network
	orders  orders

	encodings []journal.Encoding
	removes   bool // events are truncated and things deleted
	removals  removals
}

// Run lets the world happen, and judges it. The error is not about the library: the context has
// ended, or the database cannot be used.
func (w World) Run(ctx context.Context) (Report, error) {
	random := rand.New(rand.NewPCG(w.Seed, w.Number)) //nolint:gosec // not for secrets
	if w.Commands == 0 {
		w.Commands = 250
	}
	if w.patience == 0 {
		w.patience = stuckAfter
	}
	run := &running{
		World: w, truth: newTruth(), now: time.Now,
		window: 1 + random.IntN(4), span: draw.Pick(random, 15, 30, 60), heavy: random.IntN(50) == 0,
	}
	run.turns = &turns{random: random, stay: draw.Pick(random, 0.5, 0.7, 0.9), tick: func() {}, free: w.Number%freeEvery == freeEvery-1}
	if run.heavy {
		run.Commands = max(1, w.Commands/5)
	}
	faults := &draw.FaultMix{}
	if w.Client == nil {
		run.memory = dynamotest.Open(dynamotest.Seed(random.Uint64()))
		defer run.memory.Close()
		run.Client = run.memory.Client()
		clock := run.memory.Clock()
		run.now = clock.Now
		if !run.turns.free {
			clock.Set(time.UnixMilli(1_700_000_000_000))
			clock.Freeze()
			forgets := draw.Pick(random, 0, 0, 0.02)
			run.turns.tick = func() {
				clock.Advance(time.Duration(random.IntN(20)) * time.Millisecond)
				if random.Float64() < forgets { // ClientRequestTokens, after ten minutes
					clock.Advance(11 * time.Minute)
				}
			}
		}
	} else {
		run.network.Cut = draw.Pick(random, 0, 0.005, 0.025)
		run.network.Lost = run.network.Cut
	}
	run.network.Late, run.network.LateOperations = draw.Pick(random, 0, 0.01, 0.05), []string{"TransactWriteItems", "PutItem", "UpdateItem"}
	if layout := draw.Pick(random, layouts...); run.Layout == "" {
		run.Layout = layout
	}
	run.removes = random.IntN(3) == 0
	var err error
	if run.encodings, err = drawEncodings(random); err != nil {
		return Report{}, err
	}
	if err := journal.Create(ctx, run.Client, journal.Config{Shards: 4, Layout: run.Layout}); err != nil {
		return Report{}, fmt.Errorf("create the tables: %w", err)
	}
	if err := createOutbox(ctx, run.Client); err != nil {
		return Report{}, fmt.Errorf("create the outbox: %w", err)
	}
	writers := make([]*writer, 2+random.IntN(4))
	for i := range writers {
		writers[i] = run.newWriter(i, random)
	}
	if run.memory != nil {
		faults = drawFaults(random, run.memory, run.pause)
	}
	err = run.work(ctx, writers)
	if errors.Is(err, errStuck) {
		run.truth.report(Stuck, "no command began for %v after %d", w.patience, run.truth.count())
		return Report{Findings: run.truth.findings}, nil
	}
	faults.End()
	run.turns.free = true
	for _, one := range writers {
		one.wire.calm()
	}
	if err != nil {
		return Report{}, err
	}
	if w.tamper != nil {
		if err := w.tamper(ctx, run.Client); err != nil {
			return Report{}, err
		}
	}
	return run.inspect(ctx, writers)
}

// errStuck: the writers make no progress. They are left as they are.
var errStuck = errors.New("no progress")

// work has the writers work until each of them is done.
func (w *running) work(ctx context.Context, writers []*writer) error {
	errs := make([]error, len(writers))
	var wait sync.WaitGroup
	for i, one := range writers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			one.strand.await()
			defer w.turns.leave()
			errs[i] = one.work(ctx)
		}()
	}
	w.turns.begin()
	done := make(chan struct{})
	go func() {
		wait.Wait()
		close(done)
	}()
	for begun := -1; ; {
		select {
		case <-done:
			return errors.Join(errs...)
		case <-time.After(w.patience):
		}
		now := w.truth.count()
		if now == begun {
			return errStuck
		}
		begun = now
	}
}

// pause is what a transaction that is held or torn waits for.
func (w *running) pause(ctx context.Context) {
	if w.turns.free {
		dynamotest.For(100 * time.Microsecond)(ctx)
		return
	}
	w.turns.has.wire.burn()
	w.turns.hold()
}

// thing is the id of an aggregate for the next command.
func (w *running) thing(r *rand.Rand) string {
	return fmt.Sprint(w.truth.count()/w.span + r.IntN(w.window))
}
