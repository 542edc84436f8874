// Package replay has groups that handle a part of the history.
package replay

import (
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/subscriber"
)

// Live handles the events that occur at a time or later. After a restart it continues at its
// positions.
func Live(since time.Time) millrace.Group {
	return millrace.Group{Name: "labels", Topics: []string{"order"}, Subscriber: func(c *subscriber.Config) {
		c.Start = subscriber.At(since) // or subscriber.Now(): when it first subscribes
	}}
}

// Backfill handles the events before that time, in a group of its own.
func Backfill(app *millrace.App, before time.Time, handle message.NoPublishHandlerFunc) error {
	group := millrace.Group{Name: "labels-backfill", Topics: []string{"order"}, Subscriber: func(c *subscriber.Config) {
		c.Start = subscriber.Beginning()
		c.Failures = subscriber.Park(20)
	}}
	return app.Handle(group, func(msg *message.Message) error {
		record, ok := subscriber.RecordFromContext(msg.Context())
		switch {
		case !ok:
			return errors.New("the message is not of a journal")
		case !record.OccurredAt.Before(before):
			return nil // the live group handles it
		}
		return handle(msg)
	})
}
