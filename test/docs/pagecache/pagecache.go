// Package pagecache caches the pages of accounts in the memory of one process.
package pagecache

import (
	"context"
	"errors"
	"sync"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// Cache holds the page of each account that was asked for, by its id.
type Cache struct{ Pages sync.Map }

// Watch drops the page of an account when an event of it occurs, whichever process wrote it. It
// returns when ctx ends. Begin with an empty cache, and do not use it after Watch has returned.
func (c *Cache) Watch(ctx context.Context, j *journal.Journal) (err error) {
	config := subscriber.Config{Journal: j, Broadcast: true, Start: subscriber.Now()}
	sub, err := subscriber.NewSubscriber(config, watermill.NewSlogLogger(nil))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sub.Close()) }()
	messages, err := sub.Subscribe(ctx, "account")
	if err != nil {
		return err
	}
	for msg := range messages {
		if id, _, ok := subscriber.AggregateFromContext(msg.Context()); ok {
			c.Pages.Delete(id.Value)
		}
		msg.Ack()
	}
	return nil
}
