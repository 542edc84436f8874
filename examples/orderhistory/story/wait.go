package story

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// wait calls done repeatedly until it returns true or patience has passed. Errors: [ErrWrong].
func wait(ctx context.Context, done func(context.Context) (bool, error)) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := done(waiting)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case waiting.Err() != nil:
			return fmt.Errorf("%w: not within %s", ErrWrong, patience)
		case ok || err != nil:
			return err
		}
		select {
		case <-waiting.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// caughtUp waits until a consumer group has handled all events of some topics.
func caughtUp(ctx context.Context, s *service.Service, group string, topics ...string) error {
	for _, topic := range topics {
		err := wait(ctx, func(ctx context.Context) (bool, error) {
			lag, err := s.Groups().Of(group, topic).Lag(ctx, groups.LagOptions{OldestOf: -1})
			if errors.Is(err, groups.ErrNoGroup) {
				return false, nil // the group has not begun
			}
			return lag.Events == 0, err
		})
		if err != nil {
			return fmt.Errorf("group %s and the events of each %s: %w", group, topic, err)
		}
	}
	return nil
}
