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
				_ = s.Once(ctx, now) // the function counts errors
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
