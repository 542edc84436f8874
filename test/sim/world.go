package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/tables"
	"github.com/millrace-dev/millrace/journal"
	pm "github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/test/campaign"
	"github.com/millrace-dev/millrace/test/draw"
)

// World is a database with processes and faults, drawn from a seed and a number.
type World struct {
	Seed, Number uint64
	// Small makes the world a tenth of the size, for tests.
	Small bool
	// Sabotage is the deliberate mistake of the world; empty for none.
	Sabotage Sabotage
	// Disrupt names the disruptions of the world, separated by commas, or "none". If it is empty
	// they are drawn, unless there is a sabotage.
	Disrupt string
	// Layout is the layout of the journal. If it is empty it is drawn, unless there is a sabotage.
	Layout journal.Layout
	// Trace receives a line for each event of the world.
	Trace io.Writer
}

type world struct {
	World
	plan     *plan
	trace    *trace
	oracle   *oracle
	database *dynamotest.DB
	db       *dynamodb.Client // for wires
	// For the simulation itself, without the faults of a wire.
	clean   *dynamodb.Client
	journal *journal.Journal // for the simulation itself
	calm    atomic.Bool
	wires   wires
	broker  *broker // nil without hints
	// disturbance is the source of random numbers of running disruptions.
	disturbance *rand.Rand
	// When an operator took a shard from its owner last, in nanoseconds.
	edited   atomic.Int64
	repaired sync.Map // poisoned events that were repaired
	// Number of stragglers whose owners will crash.
	struck   atomic.Int64
	stricken sync.Map // their streams

	begun     []removal // removals to be finished
	exported  []exported
	processes []*process
	events    int // committed events
}

// Run runs the world to its end. An error is an error of the simulation, not of the library. The
// clock must be that of a machine whose time jumps when all goroutines wait; otherwise it takes
// minutes.
func (w World) Run(ctx context.Context) (campaign.Report, error) {
	random := draw.New(w.Seed, w.Number)
	plan := newPlan(random, w)
	disturbance := draw.New(w.Seed, ^w.Number)
	if err := plan.disrupt(disturbance, w); err != nil {
		return campaign.Report{}, err
	}
	trace := newTrace(w.Trace)
	run := &world{World: w, plan: plan, trace: trace, oracle: newOracle(trace), disturbance: disturbance}
	if plan.disruption.has(Hints) {
		run.broker = &broker{world: run, plan: plan.disruption.hints, random: draw.Derive(disturbance)}
	}
	err := run.run(ctx, random)
	o := run.oracle
	report := campaign.Report{
		Count: o.handed, Events: run.events, Findings: o.findings, Virtual: trace.now(), Seen: trace.seen, Plan: plan.String(),
	}
	return report, err
}

func (w *world) run(ctx context.Context, random *rand.Rand) error {
	goroutines := runtime.NumGoroutine()
	db := dynamotest.Open(dynamotest.WithSeed(random.Uint64()))
	defer db.Close()
	w.database, w.db, w.clean = db, db.Client(), db.Client()
	if err := w.create(ctx); err != nil {
		return err
	}
	j, err := w.open(ctx, w.clean, &clock{})
	if err != nil {
		return err
	}
	w.journal = j
	if err := w.grow(ctx); err != nil {
		return err
	}
	for _, g := range w.plan.groups {
		w.oracle.filters[g.name] = len(g.config.EventTypes) > 0
		w.oracle.runs[g.name] = g.handlers.runs
		w.oracle.skips[g.name] = g.failures.policy == skips
	}
	w.populate(random)
	operator, err := w.newOperator(ctx, "operator", random)
	if err != nil {
		return err
	}
	faults, stale := drawFaults(draw.Derive(random), db, w.plan)
	w.storm(ctx, operator, random)
	faults.End()
	if stale != nil {
		w.oracle.count("stale reads", stale.Fired())
	}
	heads, err := w.finish(ctx, operator, random)
	if err != nil {
		return err
	}
	if err := w.inspect(ctx, heads); err != nil {
		return err
	}
	if err := w.inspectRebuilt(ctx, heads); err != nil {
		return err
	}
	if err := w.inspectRows(ctx, heads); err != nil {
		return err
	}
	if err := w.inspectSagas(ctx, heads); err != nil {
		return err
	}
	if err := w.inspectArchives(ctx); err != nil {
		return err
	}
	w.wires.close()
	w.leaks(goroutines)
	return nil
}

// grow makes the tail grow during the storm. Writers use new partitions some minutes after they are
// made, so the world waits for the rest of that time.
func (w *world) grow(ctx context.Context) error {
	if w.plan.growth == 1 {
		return nil
	}
	since, err := w.journal.GrowTail(ctx, w.plan.shards*w.plan.growth)
	pauseFor(ctx, time.Until(since.Add(-w.plan.growsAfter)))
	return err
}

func (w *world) create(ctx context.Context) error {
	if err := journal.Create(ctx, w.clean, journal.Config{Shards: w.plan.shards, Layout: w.plan.layout}); err != nil {
		return err
	}
	if err := pm.CreateTable(ctx, w.clean, pm.DefaultTable); err != nil {
		return err
	}
	if err := projection.CreateTable(ctx, w.clean, rowTable.Table); err != nil {
		return err
	}
	return tables.Ensure(ctx, w.clean, &dynamodb.CreateTableInput{
		TableName:            aws.String(effectsTable),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	})
}

// populate makes the processes. None of them lives yet.
func (w *world) populate(random *rand.Rand) {
	for g := range w.plan.groups {
		group := &w.plan.groups[g]
		for n := range group.members {
			w.processes = append(w.processes, &process{
				world: w, name: fmt.Sprintf("%s/%d", group.name, n+1), group: group, random: draw.Derive(random), clock: &clock{skew: w.skew(random)},
				bursts: n%2 == 0,
			})
		}
	}
}

// skew returns the error of a clock. TrailingDelay has to allow for it twice.
func (w *world) skew(r *rand.Rand) time.Duration {
	most := w.plan.trailing / 20
	return draw.UpTo(r, 2*most) - most
}

// storm is the first phase: all processes live and write, with trouble, until everything is
// written.
func (w *world) storm(ctx context.Context, operator *operator, random *rand.Rand) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var living, writing sync.WaitGroup
	for _, p := range w.processes {
		living.Add(1)
		go func() {
			defer living.Done()
			p.live(ctx)
		}()
	}
	if w.plan.sabotage == Forget {
		living.Add(1)
		r := draw.Derive(random)
		go func() {
			defer living.Done()
			w.forgetful(ctx, r)
		}()
	}
	var clocks []*clock
	for n := range w.plan.writers {
		wr := w.writer(n, random)
		if wr.clock != nil {
			clocks = append(clocks, wr.clock)
		}
		writing.Add(1)
		go func() {
			defer writing.Done()
			wr.run(ctx)
		}()
	}
	if w.plan.operators || w.plan.anybodyWaits() {
		living.Add(1)
		go func() {
			defer living.Done()
			operator.work(ctx)
		}()
	}
	disruptions, err := w.disrupt(ctx, clocks)
	if err != nil {
		w.oracle.note("no disruptions", "")
	}
	writing.Wait()
	disruptions.lasting.Wait()
	if w.plan.dear {
		w.linger(ctx)
	}
	stop()
	living.Wait()
	disruptions.endless.Wait()
}

func (w *world) writer(n int, random *rand.Rand) *writer {
	wr := &writer{world: w, name: fmt.Sprint("w", n+1), random: draw.Derive(random), commits: w.plan.commits / w.plan.writers, proves: n%2 == 0}
	wrong := w.plan.wrongClocks && (n == 0 || random.IntN(2) == 0)
	if !wrong && random.IntN(3) == 0 { // in a process that subscribes
		p := draw.Pick(random, w.processes...)
		wr.journal = func() *journal.Journal {
			if p.life == nil {
				return nil
			}
			return p.life.journal
		}
		return wr
	}
	m := &member{name: wr.name}
	client := w.wire(m, draw.Derive(random)).client(w.db)
	c := &clock{skew: w.skew(random)}
	if wrong {
		c.skew = 10*time.Minute + draw.UpTo(random, 30*time.Hour)
		if random.IntN(2) == 0 {
			c.skew = -c.skew
		}
	}
	wr.clock = c
	var own *journal.Journal
	wr.journal = func() *journal.Journal {
		if own == nil {
			own, _ = w.open(context.Background(), client, c)
		}
		return own
	}
	return wr
}

func (w *world) isCalm() bool { return w.calm.Load() }

// leaks waits until only the goroutines from before are left.
func (w *world) leaks(before int) {
	for end := time.Now().Add(2 * time.Minute); runtime.NumGoroutine() > before; {
		if time.Now().After(end) {
			stacks := make([]byte, 16<<10)
			w.oracle.find(Leak, "%d goroutines are left:\n%s", runtime.NumGoroutine()-before, stacks[:runtime.Stack(stacks, true)])
			return
		}
		time.Sleep(time.Second)
	}
}

func numberValue(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}
