package journaltype

import "time"

// Tables names the tables of a journal. DynamoDB allows 3 to 255 letters, digits and _.- in a name.
type Tables struct {
	Journal    string // default "journal"
	Snapshot   string // default "snapshot"
	Checkpoint string // default "checkpoint"; positions of consumer groups
}

// ClassicOptions holds settings for tables of the layout [Classic] that another program has created
// or also uses. The defaults are right for all other tables.
type ClassicOptions struct {
	// Attributes are the names of the attributes that the event-store-adapter schema defines.
	Attributes Attributes

	// Indexes are the names of the global secondary indexes.
	Indexes Indexes

	// Resolver maps an aggregate to its shard. Default: resolver.FNV1a, which is right for new
	// tables. journal.Adopt needs the resolver of the application that made the tables.
	Resolver KeyResolver

	// OccurredAtUnit is the unit of the stored times of events since 1970: time.Second,
	// time.Millisecond, time.Microsecond or time.Nanosecond. Records have milliseconds in any case.
	// With seconds, an event can arrive up to subscriber.Timing.TrailingDelay late.
	//
	// journal.Create stores it; default: time.Millisecond. journal.Adopt stores it too. Its default
	// is the unit of the sampled events, if there are any, and it refuses a unit that no sampled
	// event has. journal.Open takes it from the descriptor, and refuses another one.
	OccurredAtUnit time.Duration
}

// Indexes names the global secondary indexes of the tables.
type Indexes struct {
	JournalAggregate  string // default "journal-aid-index"
	SnapshotAggregate string // default "snapshot-aid-index"
	JournalTail       string // default "journal-tail-index"
}

// Attributes names the attributes that the event-store-adapter schema defines.
type Attributes struct {
	PartitionKey   string // default "pkey"
	SortKey        string // default "skey"
	AggregateID    string // default "aid"
	SequenceNumber string // default "seq_nr"; the schema document's tables say "ser_nr"
	Payload        string // default "payload"
	OccurredAt     string // default "occurred_at"
	Version        string // default "version"
	TTL            string // default "ttl"
}
