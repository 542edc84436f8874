package engine

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// Database is a set of tables. It is safe for concurrent use.
type Database struct {
	config Config

	mu     sync.RWMutex
	tables map[string]*table

	created   atomic.Uint64 // number of tables created so far
	remembers atomic.Int64  // how long changes are kept, in nanoseconds; see Remember

	tokens     tokens
	throughput *throughput
}

// Config configures a database. The zero value is a database without delays.
type Config struct {
	// Now is the database's clock. It determines expiry, index delays and the life of request
	// tokens. Default: time.Now.
	Now func() time.Time
	// ExpiryDelay returns how long an expired item stays.
	ExpiryDelay func() time.Duration
	// IndexDelay returns the delay of a change of the item with that key to a global index. Changes
	// of one item keep their order.
	IndexDelay func(table, index string, key func() value.Item) time.Duration
	// PartitionReads and PartitionWrites are the units that each partition accepts in a second. 0
	// means no limit.
	PartitionReads, PartitionWrites float64
}

// New returns an empty database.
func New(config Config) *Database {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.ExpiryDelay == nil {
		config.ExpiryDelay = func() time.Duration { return 0 }
	}
	return &Database{
		config: config, tables: map[string]*table{}, tokens: tokens{byToken: map[string]*token{}},
		throughput: newThroughput(config.PartitionReads, config.PartitionWrites, config.Now),
	}
}

// table finds a table by its name or its ARN.
func (db *Database) table(name *string) (*table, error) {
	if err := checkTableName(name); err != nil {
		return nil, err
	}
	db.mu.RLock()
	t := db.tables[tableName(*name)]
	db.mu.RUnlock()
	if t == nil {
		return nil, notFound("Requested resource not found")
	}
	return t, nil
}

// newTableID returns an id with DynamoDB's form that is the same in every run.
func (db *Database) newTableID() string {
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", db.created.Add(1))
}

// tableNames returns the names of all tables in order.
func (db *Database) tableNames() []string {
	db.mu.RLock()
	defer db.mu.RUnlock()
	names := make([]string, 0, len(db.tables))
	for name := range db.tables {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
