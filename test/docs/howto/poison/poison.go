// Package poison has a group that parks what it cannot handle.
package poison

import (
	"context"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Group parks an aggregate after a number of failed attempts at one event.
func Group(attempts int) millrace.Group {
	return millrace.Group{Name: "shipping", Topics: []string{"order"}, Subscriber: func(c *subscriber.Config) {
		c.Failures = subscriber.Park(attempts) // 20 attempts take about six minutes
	}}
}

// Retry retries the aggregates that were parked for a reason.
func Retry(ctx context.Context, app *millrace.App, reason string) (retried int, err error) {
	g := app.Groups().Of("shipping", "order") // one group on one topic
	return g.UnparkAll(ctx, groups.Selection{Reason: reason})
}
