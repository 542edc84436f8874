// Package poison has a group that parks what it cannot handle.
package poison

import (
	"context"
	"log"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
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
func Retry(ctx context.Context, g *groups.Groups, reason string) error {
	for parked, err := range g.Parked(ctx, "shipping", "order", aggregate.ID{}) {
		if err != nil {
			return err
		}
		log.Println(parked.Aggregate, "waits with event", parked.Next, "because", parked.Parked.Reason)
	}
	n, err := g.UnparkAll(ctx, "shipping", "order", groups.Selection{Reason: reason})
	log.Println(n, "aggregates are retried")
	return err
}
