package dynamo

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
)

// StartBudget is how long the requests at the start of a program are repeated while DynamoDB
// throttles, fails or cannot be reached. Without it, a program that starts during a disturbance
// would end, be started again, and increase the load.
const StartBudget = 30 * time.Second

// errNoAnswer is the reason for the end of a start whose requests had neither reply nor error.
var errNoAnswer = fmt.Errorf("%w: no answer within 30 seconds: check region, endpoint and network, or try again later", ErrUnavailable)

// slowAfter is the time after which [Start] reports a failure.
const slowAfter = time.Second

// SlowStart is the line that a program logs when [OnSlowStart] reports a failure.
const SlowStart = "DynamoDB delays the start, will try again for up to 30 seconds"

type slowStart struct{}

// OnSlowStart returns a context with which [Start] calls report if the start fails for more than a
// second. Each call of Start reports at most one failure.
func OnSlowStart(ctx context.Context, report func(error)) context.Context {
	return context.WithValue(ctx, slowStart{}, report)
}

// delay reports the failure of a start once, when the start is slow.
type delay struct {
	report func(error)
	timer  *time.Timer

	mu   sync.Mutex
	slow bool
	last error
	done bool // it was reported, or the start has ended
}

// watch begins to measure the time of a start.
func watch(ctx context.Context) *delay {
	d := &delay{}
	d.report, _ = ctx.Value(slowStart{}).(func(error))
	d.done = d.report == nil
	d.timer = time.AfterFunc(slowAfter, func() { d.update(true, nil) })
	return d
}

// update notes that the start is slow, or that it has failed with an error.
func (d *delay) update(slow bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = d.slow || slow
	if err != nil {
		d.last = err
	}
	if d.slow && d.last != nil && !d.done {
		d.done = true
		d.report(d.last)
	}
}

// stop ends the reports. It waits for one that is being made.
func (d *delay) stop() {
	d.timer.Stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done = true
}

// Start calls do, which must be safe to repeat, until it succeeds or its error is permanent, for at
// most [StartBudget], which includes the last call of do. So do makes a few requests: work of any
// length, such as a scan, calls Start for each page. If ctx ends first, the error contains the
// error of ctx and the last failure.
func Start(ctx context.Context, do func(ctx context.Context) error) error {
	delay := watch(ctx)
	defer delay.stop()
	wait := retry.Pauses(20*time.Millisecond, 2*time.Second, StartBudget)
	// The budget also ends a request, with the retries that the SDK makes within it.
	budget, cancel := context.WithTimeout(ctx, StartBudget)
	defer cancel()
	var last error // the last error that was not caused by the end of a context
	for {
		err := do(budget)
		if err != nil && budget.Err() != nil && ctx.Err() == nil {
			if IsContext(err) {
				err = fmt.Errorf("%w: %v", cmp.Or(last, errNoAnswer), err) //nolint:errorlint // not the end of the caller's context
			}
			return err
		}
		if err != nil && ctx.Err() != nil && last != nil {
			return fmt.Errorf("%w, after: %w", err, last)
		}
		if err == nil || !IsTransient(err) || IsContext(err) {
			return err
		}
		last = err
		delay.update(false, err)
		if !retry.Sleep(ctx, wait.NextBackOff()) {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w, after: %w", ctx.Err(), err)
			}
			return err
		}
	}
}
