// Package mails sends a mail for each order that was placed.
package mails

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// Add adds the group that sends mails. The provider is at url.
func Add(app *millrace.App, client *http.Client, url string) error {
	group := millrace.Group{Name: "mails", Topics: []string{"order"}, Subscriber: func(c *subscriber.Config) {
		c.Failures = subscriber.Defer(subscriber.Backoff{Pause: time.Second, MaxPause: 10 * time.Minute, Attempts: 30})
		// After a crash at most one event of each aggregate is delivered again.
		c.Timing.CommitInterval = -1
	}}
	return app.HandleEvents(group, cqrs.NewGroupEventHandler(func(ctx context.Context, e *shop.Placed) error {
		// The same for each delivery of the event.
		key := cqrs.OriginalMessageFromCtx(ctx).UUID
		return send(ctx, client, url, key, mail{To: e.Customer, Text: "We have your order."})
	}))
}

type mail struct{ To, Text string }

// send returns nil if the mail was sent, now or at an earlier attempt.
func send(ctx context.Context, client *http.Client, url, key string, m mail) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Idempotency-Key", key)
	request.Header.Set("Content-Type", "application/json")
	reply, err := client.Do(request)
	if err != nil {
		// The outcome is unknown. The event is delivered again, with the same key.
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode >= 300 {
		return fmt.Errorf("the mail provider answers %s", reply.Status)
	}
	return nil
}
