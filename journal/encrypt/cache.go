package encrypt

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/millrace-dev/millrace/aggregate"
)

// cache keeps what was last read of keys, for a time and up to a number. That a key was destroyed
// is kept as well: a subscriber asks once for each event.
type cache struct {
	lifetime time.Duration
	now      func() time.Time

	mu        sync.Mutex
	entries   *lru.Cache[aggregate.ID, entry]
	forgotten uint64 // how often forget was called
}

type entry struct {
	sealer *sealer
	err    error
	until  time.Time
}

// ticket is taken before a key is read. With an older one than the last forget nothing is kept: the
// key may have been read before it was destroyed.
type ticket struct {
	at        time.Time
	forgotten uint64
}

func newCache(c Config) (*cache, error) {
	entries, err := lru.New[aggregate.ID, entry](c.CacheKeys)
	return &cache{lifetime: c.CacheLifetime, now: c.Now, entries: entries}, err
}

// get returns what is known, or the ticket to read what is not.
func (c *cache) get(id aggregate.ID) (e entry, known bool, t ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	e, known = c.entries.Get(id)
	return e, known && now.Before(e.until), ticket{at: now, forgotten: c.forgotten}
}

// keep notes what was read: a key, or that it was destroyed.
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
