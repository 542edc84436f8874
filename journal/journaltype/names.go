package journaltype

import (
	"encoding/json"
)

// Tables names the tables of a journal. DynamoDB allows 3 to 255 letters, digits and _.- in a name.
type Tables struct {
	Journal    string // default "journal"
	Snapshot   string // default "snapshot"
	Checkpoint string // default "checkpoint"; positions of consumer groups
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

// String returns the names as JSON, the form in which the descriptor stores them.
func (a Attributes) String() string {
	text, _ := json.Marshal(a) // a struct of strings always marshals
	return string(text)
}
