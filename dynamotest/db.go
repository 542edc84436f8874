package dynamotest

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// DB is a DynamoDB in this process: the tables of one account in one region. It holds everything in
// memory and is safe for concurrent use.
type DB struct {
	injector
	engine   *engine.Database
	clock    Clock
	requests atomic.Uint64
	expiry   time.Duration
}

// Option changes what [New], [Open], [NewProxy] and [OpenProxy] make.
type Option func(*settings)

type settings struct {
	seed   uint64
	expiry time.Duration
}

func settingsOf(options []Option) settings {
	s := settings{seed: 1}
	for _, option := range options {
		option(&s)
	}
	return s
}

// Seed chooses what is drawn at random: by [Chance] and by faults that leave something open. The
// default is 1: the same run every time.
func Seed(seed uint64) Option { return func(s *settings) { s.seed = seed } }

// ExpiryDelay is how long an item stays after its TTL. DynamoDB promises deletion "within a few
// days". The default is 0: an item is gone as soon as [Clock] passes its TTL. A [Proxy] does not
// support it.
func ExpiryDelay(delay time.Duration) Option { return func(s *settings) { s.expiry = delay } }

// TB is what [New] and [NewProxy] need of a *testing.T or *testing.B.
type TB interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
}

// New makes an empty database for a test, and closes it when the test ends. If the test fails it
// logs the seed, if faults were drawn at random, and the faults that did not happen.
func New(t TB, options ...Option) *DB {
	t.Helper()
	db := Open(options...)
	db.closeWith(t)
	return db
}

// Open makes an empty database for a program. Close ends it.
func Open(options ...Option) *DB {
	s := settingsOf(options)
	db := &DB{expiry: s.expiry}
	db.start(db, false, s)
	db.engine = engine.New(engine.Config{
		Now:         db.clock.Now,
		ExpiryDelay: func() time.Duration { return db.expiry },
		IndexDelay:  db.indexDelay,
	})
	return db
}

// Clock is the database's time.
func (db *DB) Clock() *Clock { return &db.clock }

// Handler serves the database over HTTP, for other programs and for clients in other languages:
// give it to an http.Server or httptest.NewServer, and its URL to them as endpoint. Any credentials
// and any region do, but requests must be signed, or at least have an Authorization header.
func (db *DB) Handler() http.Handler { return handler{db} }
