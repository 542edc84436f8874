package dynamotest

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// DB is a DynamoDB in this process: the tables of one account in one region. It keeps everything in
// memory and is safe for concurrent use.
type DB struct {
	injector
	engine   *engine.Database
	clock    Clock
	requests atomic.Uint64
	expiry   time.Duration
}

// Option is an option of [New], [Open], [NewProxy] and [OpenProxy].
type Option func(*settings)

type settings struct {
	seed   uint64
	expiry time.Duration
	// write and read are the units of a partition in a second; 0 means no limit.
	write, read float64
}

func settingsOf(options []Option) settings {
	s := settings{seed: 1}
	for _, option := range options {
		option(&s)
	}
	return s
}

// WithSeed sets the seed for random decisions: those of [Chance], and of faults with a random part.
// Default: 1, so that every run is the same.
func WithSeed(seed uint64) Option { return func(s *settings) { s.seed = seed } }

// WithExpiryDelay sets how long an item stays after its TTL. DynamoDB promises deletion "within a
// few days". Default: 0, so an item is gone as soon as [Clock] passes its TTL. A [Proxy] does not
// support this option.
func WithExpiryDelay(delay time.Duration) Option { return func(s *settings) { s.expiry = delay } }

// WithPartitionLimits limits how many write and read units each partition accepts in a second; 0
// means no limit, which is the default. DynamoDB's limits are 1,000 and 3,000. A call that needs
// more than a partition has left fails like a call with the fault [Throttle]. It has no effect and
// no cost. It fails with a ProvisionedThroughputExceededException, with a reason of a cancelled
// transaction, or with unprocessed items of a batch. [Call] shows the partition. A [Proxy] does not
// support this option.
//
// A partition here consists of the items of a table that have the same partition key, with their
// local indexes. The items of a global index with the same partition key of the index are another
// partition. A write needs units of the table's partition, and of each index partition in which it
// changes an entry. So an index partition without units throttles writes to the table.
//
// This is simpler than DynamoDB. There a partition contains many partition keys and splits under
// load, also between the sort keys of one partition key, but not if these grow with time. DynamoDB
// throttles a table when its index has fallen behind; dynamotest does so immediately.
//
// Units return continuously, by [Clock], up to those of one second. Units that a partition did not
// use earlier are lost. DynamoDB lets a table use the units of the last 5 minutes, but a partition
// cannot exceed its limits by that. A call that needs more than the units of a second succeeds if
// the partition has all of them, and the partition then has a debt.
func WithPartitionLimits(writeUnits, readUnits float64) Option {
	mustBe(writeUnits >= 0 && readUnits >= 0, "WithPartitionLimits(%v, %v): units must not be negative", writeUnits, readUnits)
	return func(s *settings) { s.write, s.read = writeUnits, readUnits }
}

// TB is the part of *testing.T and *testing.B that [New] and [NewProxy] use.
type TB interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
}

// New returns an empty database for a test, and closes it when the test ends. If the test fails,
// New logs the faults that did not happen, and the seed if random decisions were made.
func New(t TB, options ...Option) *DB {
	t.Helper()
	db := Open(options...)
	db.closeWith(t)
	return db
}

// Open returns an empty database for a program. Close closes it.
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

// Clock returns the clock of the database.
func (db *DB) Clock() *Clock { return &db.clock }

// Handler returns a handler that serves the database over HTTP, for other programs and for clients
// in other languages. Pass it to an http.Server or httptest.NewServer, and use its URL as their
// endpoint. It accepts any credentials and any region. A request must be signed, or at least have
// an Authorization header.
func (db *DB) Handler() http.Handler { return handler{db} }
