package dynamo

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// StartBudget is how long what happens once, when a program starts, is repeated while DynamoDB
// throttles, fails or cannot be reached. A program that starts amid a disturbance would otherwise
// end, be started again, and add to it.
const StartBudget = 30 * time.Second

// Start does something that may be done again, until it succeeds or fails for good, for at most
// [StartBudget]. If ctx ends first, the error has that and the last failure.
func Start(ctx context.Context, do func(ctx context.Context) error) error {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(StartBudget),
	)
	var last error // that did not come of the context's end
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
