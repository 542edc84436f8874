package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// StartBudget is how long the requests at the start of a program are repeated while DynamoDB
// throttles, fails or cannot be reached. Without it, a program that starts during a disturbance
// would end, be started again, and increase the load.
const StartBudget = 30 * time.Second

// Start calls do, which must be safe to repeat, until it succeeds or its error is permanent, for at
// most [StartBudget]. If ctx ends first, the error contains the error of ctx and the last failure.
func Start(ctx context.Context, do func(ctx context.Context) error) error {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(StartBudget),
	)
	var last error // the last error that was not caused by the end of ctx
	for {
		err := do(ctx)
		if err != nil && ctx.Err() != nil && last != nil {
			return fmt.Errorf("%w, after: %w", err, last)
		}
		if err == nil || !IsTransient(err) || IsContext(err) {
			return err
		}
		last = err
		pause := wait.NextBackOff()
		if pause == backoff.Stop {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w, after: %w", ctx.Err(), err)
		case <-timer.C:
		}
	}
}
