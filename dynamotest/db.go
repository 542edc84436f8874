package dynamotest

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// DB is a DynamoDB in this process: the tables of one account in one region. It holds everything in memory and is
// safe for concurrent use.
type DB struct {
	engine   *engine.Database
	clock    Clock
	seed     uint64
	requests atomic.Uint64
	closed   atomic.Bool
	drew     atomic.Bool // at random
	expiry   time.Duration

	mu         sync.Mutex // held to change what follows, never to read
	injected   uint64     // ever
	injections atomic.Pointer[[]*Injection]
	observers  atomic.Pointer[[]*observer]
}

// Option changes what [New] and [Open] make.
type Option func(*DB)

// Seed chooses what is drawn at random: by [Chance] and by faults that leave something open. The default is 1: the
// same run every time.
func Seed(seed uint64) Option { return func(db *DB) { db.seed = seed } }

// ExpiryDelay is how long an item stays after its TTL. DynamoDB promises deletion "within a few days". The
// default is 0: an item is gone as soon as [Clock] passes its TTL.
func ExpiryDelay(delay time.Duration) Option { return func(db *DB) { db.expiry = delay } }

// TB is what [New] needs of a *testing.T or *testing.B.
type TB interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
}

// New makes an empty database for a test, and closes it when the test ends. If the test fails it logs the seed, if
// faults were drawn at random, and the faults that did not happen.
func New(t TB, options ...Option) *DB {
	t.Helper()
	db := Open(options...)
	t.Cleanup(func() {
		db.Close()
		if !t.Failed() {
			return
		}
		if db.drew.Load() {
			t.Logf("dynamotest: faults were drawn with dynamotest.Seed(%d)", db.seed)
		}
		if names := db.neverFired(); len(names) > 0 {
			t.Logf("dynamotest: these faults were injected and did not happen: %s", strings.Join(names, ", "))
		}
	})
	return db
}

// Open makes an empty database for a program. Close ends it.
func Open(options ...Option) *DB {
	db := &DB{seed: 1}
	for _, option := range options {
		option(db)
	}
	db.injections.Store(&[]*Injection{})
	db.observers.Store(&[]*observer{})
	db.engine = engine.New(engine.Config{
		Now:         db.clock.Now,
		ExpiryDelay: func() time.Duration { return db.expiry },
		IndexDelay:  db.indexDelay,
	})
	return db
}

// Close makes every later call fail, so that what outlives its test is noticed. It does not wait: nothing runs in the
// background.
func (db *DB) Close() { db.closed.Store(true) }

// Clock is the database's time.
func (db *DB) Clock() *Clock { return &db.clock }

// Handler serves the database over HTTP, for other programs and for clients in other languages: give it to an
// http.Server or httptest.NewServer, and its URL to them as endpoint. Any credentials and any region do, but
// requests must be signed, or at least have an Authorization header.
func (db *DB) Handler() http.Handler { return handler{db} }
