package encrypt

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/millrace-dev/millrace/aggregate"
)

// cache keeps recently read keys for a limited time, up to a limited number. It also keeps the fact
// that a key was destroyed, because a subscriber asks for the key of each event.
type cache struct {
	lifetime time.Duration
	now      func() time.Time

	mu        sync.Mutex
	entries   *lru.Cache[aggregate.ID, entry]
	forgotten uint64 // number of calls of forget
}

type entry struct {
	sealer *sealer
	err    error
	until  time.Time
}

// ticket is taken before a key is read. If forget was called after that, keep keeps nothing: the
// key may have been read before it was destroyed.
type ticket struct {
	at        time.Time
	forgotten uint64
}

func newCache(c Config) (*cache, error) {
	entries, err := lru.New[aggregate.ID, entry](c.CacheKeys)
	return &cache{lifetime: c.CacheLifetime, now: c.Now, entries: entries}, err
}

// get returns a cached entry, or a ticket for reading the key.
func (c *cache) get(id aggregate.ID) (e entry, known bool, t ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	e, known = c.entries.Get(id)
	return e, known && now.Before(e.until), ticket{at: now, forgotten: c.forgotten}
}

// keep stores what was read: a key, or that it was destroyed.
func (c *cache) keep(id aggregate.ID, s *sealer, err error, t ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lifetime > 0 && t.forgotten == c.forgotten {
		c.entries.Add(id, entry{sealer: s, err: err, until: t.at.Add(c.lifetime)})
	}
}

func (c *cache) forget(id aggregate.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten++
	c.entries.Remove(id)
}
