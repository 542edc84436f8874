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

// Cache holds pages of accounts by their ids. The zero value is empty.
type Cache struct {
	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	page    string
	version uint64 // of the account that the page shows
	latest  uint64 // the number of the account's last known event
}

// Page returns the page of an account, unless a later event of the account is known.
func (c *Cache) Page(id string) (page string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[id]
	return e.page, e.version > 0 && e.version >= e.latest
}

// Store stores a page that shows a version of an account.
func (c *Cache) Store(id, page string, version uint64) {
	c.update(id, func(e *entry) {
		if version > e.version {
			e.page, e.version = page, version
		}
	})
}

func (c *Cache) update(id string, change func(*entry)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[string]entry{}
	}
	e := c.entries[id]
	change(&e)
	c.entries[id] = e
}

// Watch learns of the events of all accounts, whichever process wrote them. It returns when ctx
// ends. Begin with an empty cache, and do not use it after Watch has returned.
func (c *Cache) Watch(ctx context.Context, j *journal.Journal) (err error) {
	config := subscriber.BroadcastConfig{Journal: j, Start: subscriber.Now()}
	sub, err := subscriber.NewBroadcast(config, watermill.NewSlogLogger(nil))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sub.Close()) }()
	messages, err := sub.Subscribe(ctx, "account")
	if err != nil {
		return err
	}
	for msg := range messages {
		if id, number, ok := subscriber.AggregateFromContext(msg.Context()); ok {
			c.update(id.Value, func(e *entry) { e.latest = max(e.latest, number) })
		}
		msg.Ack()
	}
	return nil
}
