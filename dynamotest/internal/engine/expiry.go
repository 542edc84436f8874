package engine

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/tidwall/btree"
)

// expiry finds the items of a table that have expired.
type expiry struct {
	attribute string
	items     *btree.BTreeG[expiring]
}

type expiring struct {
	at int64 // epoch seconds
	of position
}

func newExpiry(attribute string) *expiry {
	return &expiry{attribute: attribute, items: btree.NewBTreeGOptions(func(a, b expiring) bool {
		if a.at != b.at {
			return a.at < b.at
		}
		return a.of.compare(b.of) < 0
	}, btree.Options{NoLocks: true})}
}

// indexExpiry enters all items.
func (t *table) indexExpiry(now time.Time) {
	t.rows.Scan(func(r *row) bool {
		t.expiry.enter(r, now)
		return true
	})
}

func (e *expiry) enter(r *row, now time.Time) {
	if at, ok := e.of(r); ok && at > now.Add(-fiveYears).Unix() {
		e.items.Set(expiring{at: at, of: r.position})
	}
}

func (e *expiry) leave(r *row) {
	if at, ok := e.of(r); ok {
		e.items.Delete(expiring{at: at, of: r.position})
	}
}

func (e *expiry) of(r *row) (at int64, ok bool) {
	if r == nil {
		return 0, false
	}
	n, isNumber := r.item[e.attribute].(*types.AttributeValueMemberN)
	if !isNumber {
		return 0, false
	}
	whole, _, _ := strings.Cut(n.Value, ".")
	at, err := strconv.ParseInt(whole, 10, 64)
	return at, err == nil
}

// fiveYears is the oldest age of a TTL at which the item still expires. An older value is regarded
// as a mistake. Source: Developer Guide, "Using time to live (TTL) in DynamoDB".
const fiveYears = 5 * 365 * 24 * time.Hour

// due reports whether an item expired before a time.
func (e *expiry) due(now time.Time) bool {
	if e == nil {
		return false
	}
	_, ok := e.first(now)
	return ok
}

func (e *expiry) first(now time.Time) (first expiring, ok bool) {
	first, ok = e.items.Min()
	return first, ok && first.at <= now.Unix()
}

// expire deletes the items that expired before a time. It costs no capacity.
func (db *Database) expire(t *table, now time.Time) {
	if t.expiry == nil {
		return
	}
	var later []expiring // held by a transaction
	for {
		x, ok := t.expiry.first(now)
		if !ok {
			break
		}
		if _, held := t.held[x.of]; held {
			later = append(later, x)
			t.expiry.items.Delete(x)
			continue
		}
		db.replace(&Cost{}, t, x.of, nil, 1)
	}
	for _, x := range later {
		t.expiry.items.Set(x)
	}
}
