package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/draw"
)

// World configures a measurement.
type World struct {
	Shards     int
	Members    int // members of each group, which are processes
	Groups     int
	Aggregates int
	// Attempted events per second.
	Rate     int
	Payload  int           // bytes of an event
	Duration time.Duration // of the load
	// Processes that are replaced one by one, evenly over Duration.
	Restarts int
	Layout   journal.Layout

	// Capacity of a partition per second; 0 for no limit.
	WriteUnits, ReadUnits float64
}

// topic is the type of all aggregates.
const topic = "order"

// Time limits.
const (
	leastIndexLag, mostIndexLag = 5 * time.Millisecond, 50 * time.Millisecond
	starting                    = time.Second     // start of all processes
	storing                     = 6 * time.Second // until positions and cursors are stored
	patience                    = 2 * time.Minute // for events that must happen eventually
	sighting                    = 250 * time.Millisecond
)

// run is a running world.
type run struct {
	World
	db     *dynamotest.DB
	random *rand.Rand
	meter  meter
	truth  *truth

	processes []*process
	retired   []*process
}

// Run runs the world to its end, in a bubble of testing/synctest. An error is an error of the
// measurement. Mistakes of the library are in the report.
func (w World) Run(ctx context.Context) (*Report, error) {
	db := dynamotest.Open(dynamotest.WithPartitionLimits(w.WriteUnits, w.ReadUnits))
	defer db.Close()
	db.Inject(dynamotest.DelayIndex(leastIndexLag, mostIndexLag))
	if err := journal.Create(ctx, db.Client(), journal.Config{Shards: w.Shards, Layout: w.Layout}); err != nil {
		return nil, err
	}
	r := &run{World: w, db: db, truth: newTruth(w.Groups, w.Aggregates)}
	r.random = draw.New(1, 1)
	defer db.Observe(r.meter.see)()
	report := &Report{World: w}
	begin := time.Now()
	defer r.closeAll()
	if err := r.startAll(ctx); err != nil {
		return nil, err
	}
	var err error
	if report.Balanced, err = r.balance(ctx, begin); err != nil {
		return nil, err
	}
	if err := r.load(ctx, report); err != nil {
		return nil, err
	}
	report.Drained = r.drain(ctx)
	r.closeAll()
	report.Groups, report.Missing, report.Wrong = r.truth.latencies, r.truth.undelivered(), r.truth.wrong.Load()
	return report, nil
}

// load makes writers commit and measures the cost, including positions and cursors.
func (r *run) load(ctx context.Context, report *Report) error {
	writers, err := r.newWriters(ctx)
	if err != nil {
		return err
	}
	before := r.work()
	r.meter.reset()
	begin := time.Now()
	writing, cancel := context.WithTimeout(ctx, r.Duration)
	defer cancel()
	var working sync.WaitGroup
	for _, w := range writers {
		working.Add(1)
		go func() {
			defer working.Done()
			w.work(writing)
		}()
	}
	err = r.restart(ctx, begin)
	working.Wait()
	report.Took = time.Since(begin)
	time.Sleep(storing)
	report.Measured = time.Since(begin)
	r.meter.read(report)
	report.Work = r.work().minus(before)
	for _, w := range writers {
		report.Commits.merge(w.commits)
		report.Failed += w.failed
	}
	return err
}

// restart replaces processes, one by one over the time of the load.
func (r *run) restart(ctx context.Context, begin time.Time) error {
	for i := range r.Restarts {
		due := begin.Add(r.Duration * time.Duration(i+1) / time.Duration(r.Restarts+1))
		if !retry.Sleep(ctx, max(0, time.Until(due))) {
			return ctx.Err()
		}
		old := r.processes[i%r.Members]
		old.close()
		r.retired = append(r.retired, old)
		next, err := r.start(ctx)
		if err != nil {
			return err
		}
		r.processes[i%r.Members] = next
	}
	return nil
}

// balance waits until the shards of each group are shared evenly, and returns the time.
func (r *run) balance(ctx context.Context, begin time.Time) (time.Duration, error) {
	for !r.isBalanced() {
		if time.Since(begin) > patience {
			return 0, fmt.Errorf("the shards are not shared evenly after %v", patience)
		}
		if !retry.Sleep(ctx, sighting) {
			return 0, ctx.Err()
		}
	}
	return time.Since(begin), nil
}

func (r *run) isBalanced() bool {
	most := (r.Shards + r.Members - 1) / r.Members
	for g := range r.Groups {
		held := 0
		for _, p := range r.processes {
			n := len(p.subscribers[g].Shards())
			if n > most {
				return false
			}
			held += n
		}
		if held != r.Shards {
			return false
		}
	}
	return true
}

// drain waits until all events have arrived, and returns the time.
func (r *run) drain(ctx context.Context) time.Duration {
	begin := time.Now()
	for r.truth.undelivered() > 0 && time.Since(begin) < patience && ctx.Err() == nil {
		retry.Sleep(ctx, sighting)
	}
	return time.Since(begin)
}
