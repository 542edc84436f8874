// Package bursts handles events in a process that does not run for long.
package bursts

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/subscriber"
)

// Announced handles the events of an order that another process has just written.
func Announced(ctx context.Context, app *millrace.App, order string, version uint64) error {
	left, err := app.CatchUp(ctx, subscriber.Hint{
		Aggregate: aggregate.ID{Type: "order", Value: order}, Version: version,
	})
	report(left)
	return err
}

// EachMinute handles what hints have missed, and what is due.
func EachMinute(ctx context.Context, app *millrace.App) error {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Second)
	defer cancel()
	left, err := app.CatchUp(ctx)
	report(left)
	return err
}

func report(left subscriber.Left) {
	if left.Aggregates > 0 {
		fmt.Printf("%d aggregates wait for the next bursts\n", left.Aggregates)
	}
}
