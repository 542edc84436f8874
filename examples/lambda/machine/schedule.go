package machine

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/uuid"
)

// Schedule invokes a function at an interval, as a rule of EventBridge does. An invocation that
// fails is not repeated.
type Schedule struct {
	Name  string
	Every time.Duration
	// Invoke is Function.Invoke.
	Invoke func(ctx context.Context, payload []byte, response io.Writer) error
	// Failed is called for each invocation that has failed. Default: none.
	Failed func(error)
}

// Run invokes the function until ctx ends. It returns after all invocations have returned.
func (s Schedule) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	ticks := time.NewTicker(s.Every)
	defer ticks.Stop()
	for {
		select {
		case now := <-ticks.C:
			running.Add(1)
			go func() {
				defer running.Done()
				if err := s.Once(ctx, now); err != nil && ctx.Err() == nil && s.Failed != nil {
					s.Failed(err)
				}
			}()
		case <-ctx.Done():
			return
		}
	}
}

// Once invokes the function once.
func (s Schedule) Once(ctx context.Context, now time.Time) error {
	payload, err := json.Marshal(events.EventBridgeEvent{
		Version: "0", ID: uuid.NewString(), DetailType: "Scheduled Event", Source: "aws.events", AccountID: Account,
		Time: now.UTC().Truncate(time.Second), Region: Region, Detail: json.RawMessage("{}"),
		Resources: []string{"arn:aws:events:" + Region + ":" + Account + ":rule/" + s.Name},
	})
	if err != nil {
		return err
	}
	return s.Invoke(ctx, payload, io.Discard)
}
