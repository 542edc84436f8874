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
	seed        uint64
	expiry      time.Duration
	write, read float64 // units of a partition in a second; 0 for any number
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

// PartitionLimits bounds how many write and read units each partition takes in a second; 0 is any
// number. DynamoDB's limits are 1,000 and 3,000. A call that would exceed what a partition has left
// fails like one that [Throttle] hits, without an effect and without cost: with a
// ProvisionedThroughputExceededException, as the reason of a cancelled transaction, or as
// unprocessed items of a batch. [Call] shows the partition. A [Proxy] does not support it.
//
// A partition here is the items of a table that have one partition key, with their local indexes,
// or the items of a global index that have one partition key of the index. A write needs units of
// the table's partition and of each index partition in which it changes an entry, so that an index
// partition with nothing left throttles writes of the table. In DynamoDB a partition holds many
// partition keys, and splits under load, also between the sort keys of one partition key, but not
// if these grow with time. It throttles a table when its index has fallen behind; here that is at
// once.
//
// Units return continuously, by [Clock], up to those of one second: what a partition did not use
// before that is lost. DynamoDB lets a table use what it saved in 5 minutes, but a partition not
// exceed its limits by that. A call that needs more than a second's units passes if all of
// them are there, and the partition owes the rest.
func PartitionLimits(writeUnits, readUnits float64) Option {
	mustBe(writeUnits >= 0 && readUnits >= 0, "PartitionLimits(%v, %v): units are not negative", writeUnits, readUnits)
	return func(s *settings) { s.write, s.read = writeUnits, readUnits }
}

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

		PartitionWrites: s.write, PartitionReads: s.read,
	})
	return db
}

// Clock is the database's time.
func (db *DB) Clock() *Clock { return &db.clock }

// Handler serves the database over HTTP, for other programs and for clients in other languages:
// give it to an http.Server or httptest.NewServer, and its URL to them as endpoint. Any credentials
// and any region do, but requests must be signed, or at least have an Authorization header.
func (db *DB) Handler() http.Handler { return handler{db} }
