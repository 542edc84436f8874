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
	"github.com/millrace-dev/millrace/test/campaign"
	"github.com/millrace-dev/millrace/test/draw"
)

// World is a database with writers and faults, all drawn from Seed and Number.
type World struct {
	Seed, Number uint64
	// Client is a client of an empty database for this world alone. If it is nil, the world uses
	// dynamotest, with all its faults. Otherwise the only faults are broken connections.
	Client *dynamodb.Client
	// Commands is the number of commands of each writer. Default: 250.
	Commands int
	// Layout is the layout of the journal. Default: drawn from the seed.
	Layout journal.Layout

	tamper   func(context.Context, *dynamodb.Client) error // before the inspection
	patience time.Duration                                 // see stuckAfter
}

// freeEvery is the number of worlds for each one whose writers run freely.
const freeEvery = 8

// layouts are the layouts that are drawn.
var layouts = []journal.Layout{journal.Classic, journal.Packed}

// stuckAfter is the time without a new command after which a world is stuck. A command takes
// milliseconds, or seconds if many worlds share two processors.
const stuckAfter = 5 * time.Minute

// running is a running world.
type running struct {
	World
	truth  *truth
	turns  *turns
	memory *dynamotest.DB // nil on another database
	now    func() time.Time
	// Number of aggregates that commands use at a time.
	window int
	// Number of commands until the window moves on by one, and so the length of a history.
	span    int
	heavy   bool
	network draw.Network
	orders  orders

	encodings []journal.Encoding
	// Events are truncated and things deleted.
	removes  bool
	removals removals
}

// Run runs the world and inspects it. An error is not about the library: the context has ended, or
// the database cannot be used.
func (w World) Run(ctx context.Context) (campaign.Report, error) {
	random := draw.New(w.Seed, w.Number)
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
	run.turns = &turns{random: random, stay: draw.Pick(random, 0.5, 0.7, 0.9), tick: func() {}}
	run.turns.free.Store(w.Number%freeEvery == freeEvery-1)
	if run.heavy {
		run.Commands = max(1, w.Commands/5)
	}
	faults := &draw.FaultMix{}
	if w.Client == nil {
		run.memory = dynamotest.Open(dynamotest.WithSeed(random.Uint64()))
		defer run.memory.Close()
		run.Client = run.memory.Client()
		clock := run.memory.Clock()
		run.now = clock.Now
		if !run.turns.free.Load() {
			clock.Set(time.UnixMilli(1_700_000_000_000))
			clock.Freeze()
			forgets := draw.Pick(random, 0, 0, 0.02)
			run.turns.tick = func() {
				clock.Advance(time.Duration(random.IntN(20)) * time.Millisecond)
				// After a minute a writer reads the descriptor beside its commands. DynamoDB
				// forgets a ClientRequestToken after ten minutes.
				if random.Float64() < forgets {
					clock.Advance(draw.Pick(random, time.Minute, 11*time.Minute))
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
		return campaign.Report{}, err
	}
	if err := journal.Create(ctx, run.Client, journal.Config{Shards: 4, Layout: run.Layout}); err != nil {
		return campaign.Report{}, fmt.Errorf("create the tables: %w", err)
	}
	if err := createOutbox(ctx, run.Client); err != nil {
		return campaign.Report{}, fmt.Errorf("create the outbox: %w", err)
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
		return campaign.Report{Findings: run.truth.findings}, nil
	}
	faults.End()
	run.turns.free.Store(true)
	for _, one := range writers {
		one.wire.calm()
	}
	if err != nil {
		return campaign.Report{}, err
	}
	if w.tamper != nil {
		if err := w.tamper(ctx, run.Client); err != nil {
			return campaign.Report{}, err
		}
	}
	return run.inspect(ctx, writers)
}

// errStuck reports that the writers make no progress. They are left running.
var errStuck = errors.New("no progress")

// work makes the writers work until all of them are done.
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

// pause waits while a transaction is held or torn.
func (w *running) pause(ctx context.Context) {
	if w.turns.free.Load() {
		dynamotest.For(100 * time.Microsecond)(ctx)
		return
	}
	w.turns.has.wire.burn()
	w.turns.hold()
}

// thing draws the id of an aggregate for the next command.
func (w *running) thing(r *rand.Rand) string {
	return fmt.Sprint(w.truth.count()/w.span + r.IntN(w.window))
}
