package encrypt

import (
	"container/list"
	"crypto/cipher"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// cache keeps what was last read of keys, for a time and up to a number. That a key was destroyed is kept as well: a
// subscriber asks once for each event.
type cache struct {
	lifetime time.Duration
	most     int
	now      func() time.Time

	mu        sync.Mutex
	entries   map[aggregate.ID]*list.Element // of *entry
	byUse     *list.List                     // the latest used first
	forgotten uint64                         // how often forget was called
}

// entry does not change.
type entry struct {
	id    aggregate.ID
	aead  cipher.AEAD
	err   error
	until time.Time
}

// ticket is taken before a key is read. With an older one than the last forget nothing is kept: the key may have been
// read before it was destroyed.
type ticket struct {
	at        time.Time
	forgotten uint64
}

func newCache(c Config) *cache {
	return &cache{
		lifetime: c.CacheLifetime, most: c.CacheKeys, now: c.Now,
		entries: map[aggregate.ID]*list.Element{}, byUse: list.New(),
	}
}

// get gives nil for what has to be read.
func (c *cache) get(id aggregate.ID) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.entries[id]
	if element == nil {
		return nil
	}
	e := element.Value.(*entry)
	if !c.now().Before(e.until) {
		c.drop(element)
		return nil
	}
	c.byUse.MoveToFront(element)
	return e
}

func (c *cache) ticket() ticket {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ticket{at: c.now(), forgotten: c.forgotten}
}

// keep notes what was read: a key, or that it was destroyed.
func (c *cache) keep(id aggregate.ID, aead cipher.AEAD, err error, t ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lifetime <= 0 || t.forgotten != c.forgotten {
		return
	}
	if old := c.entries[id]; old != nil {
		c.drop(old)
	}
	c.entries[id] = c.byUse.PushFront(&entry{id: id, aead: aead, err: err, until: t.at.Add(c.lifetime)})
	if c.byUse.Len() > c.most {
		c.drop(c.byUse.Back())
	}
}

func (c *cache) forget(id aggregate.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten++
	if element := c.entries[id]; element != nil {
		c.drop(element)
	}
}

func (c *cache) drop(element *list.Element) {
	c.byUse.Remove(element)
	delete(c.entries, element.Value.(*entry).id)
}
