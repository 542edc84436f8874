package journal

import (
	"fmt"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/journal/resolver"
)

// maxShards bounds the number of shards. Every consumer group polls every shard, so more than a few
// hundred are rarely of use.
const maxShards = 65_536

// Config names the tables and describes them. The zero value opens tables that were created with
// default names.
type Config struct {
	// Tables and Indexes are the names in DynamoDB.
	Tables  Tables
	Indexes Indexes

	// Attributes are the names of the attributes that the event-store-adapter
	// schema defines.
	Attributes Attributes

	// Shards is the number of logical shards over which each aggregate type spreads, 1 to 65,536.
	// [Create] and [Adopt] need it, and it can never be changed afterwards; 16 is a good choice
	// unless you know better. A partition of DynamoDB takes 1,000 write units a second. So in the
	// Classic layout a shard takes about 500 commits a second, and fewer where states are over a
	// KB, since each commit writes the state too. In the Packed layout it takes 1,000 commits, more
	// after [Journal.GrowTail], and 1,000 new aggregates. In both, a consumer group stores the
	// positions of 500 to 1,000 aggregates a second in each shard, which GrowTail does not raise.
	// Every consumer group polls every shard. See docs/operations/scaling.md.
	//
	// [Open] takes it from the descriptor, and refuses another one.
	Shards int

	// Resolver maps an aggregate to its shard. Default: resolver.FNV1a, which is right for
	// new tables; [Adopt] needs that of the application which made the tables.
	Resolver KeyResolver

	// Layout says how events and snapshots are stored. [Create] stores it; default: [Classic].
	// [Open] takes it from the descriptor, and refuses another one.
	Layout Layout

	// CommandRetention is how long the journal remembers the command id of a commit, at least;
	// DynamoDB's time to live removes it afterwards. Default: 0: ids are kept forever, at about 200
	// bytes each.
	CommandRetention time.Duration

	// EventType returns the type of a stored event that has none, for tables to which a program of
	// the event-store-adapter family also writes: the type is then somewhere in the payload. It
	// must not change the record. An error fails the read with an [*EventTypeError]. Default: such
	// events have no type, and only readers that need none can use them.
	EventType func(*Record) (string, error)

	// Throughput makes [Create] provision the tables and their indexes.
	// Default: nil, which is on demand.
	Throughput *types.ProvisionedThroughput

	// Encodings turn payloads into what is stored, in this order, and back in reverse. Each item
	// says which ones were applied to it, so they can be added to a journal that is in use and
	// their order can change; but what an encoding was applied to can only be read with it. See
	// [ForReading] for how to begin and how to give one up. Programs of the event-store-adapter
	// family read payloads without encodings alone. Event types and metadata are never encoded.
	// Default: none.
	Encodings []Encoding

	// OccurredAtUnit is the unit of the stored times of events: time.Second, time.Millisecond,
	// time.Microsecond or time.Nanosecond, since 1970. It is for tables to which another program
	// also writes. [Create] stores it; default: time.Millisecond. [Adopt] stores it, and by default
	// finds it in the events, if there are any; it refuses a unit that none of the sampled events
	// has. With seconds, an event can arrive up to subscriber.Config.TrailingDelay late. [Open]
	// takes it from the descriptor, and refuses another one. Records have milliseconds in any case.
	OccurredAtUnit time.Duration

	// RequiredEncodings names encodings that every payload must have. An event or a snapshot that
	// lacks one is neither written nor accepted by readers, which return an [*EncodingError]. So a
	// program that can write to the tables cannot replace an encrypted payload with a plain one.
	// Name only encodings that apply to every payload, as encryption does and compression does not.
	//
	// [Create] stores it. [Open] takes it from the descriptor, and refuses another one: name it
	// there too if others may change the descriptor. [Adopt] refuses it, since the events of other
	// programs are plain. Default: none.
	RequiredEncodings []string

	// RetryBudget is how long a commit repeats its request if DynamoDB throttled it, if it met
	// another transaction, or if its reply was lost. The context's deadline ends it earlier.
	// Default: 5 seconds; it has to be well below subscriber.Config.TrailingDelay.
	RetryBudget time.Duration

	// Now is the clock that dates events, and by which subscribers judge what is past. Default:
	// time.Now, corrected by the times in DynamoDB's replies if it is known to be wrong: by a
	// second or more at first, later by some milliseconds more than a round trip takes. Another
	// clock has to be as right as that: an event with a wrong date can come to subscribers up to
	// a week late in the layout Packed, and up to subscriber.Config.ReconcileInterval late in Classic.
	Now func() time.Time

	// NewID makes commit ids: 1 to 36 characters, a limit of DynamoDB's
	// ClientRequestToken, and never the same twice, for a commit is recognized by its id.
	// Default: random UUIDs.
	NewID func() string
}

// Tables names the tables of a store. DynamoDB wants 3 to 255 letters, digits and _.- in a name.
type Tables struct {
	Journal    string // default "journal"
	Snapshot   string // default "snapshot"
	Checkpoint string // default "checkpoint"; positions of consumer groups
}

// Indexes names the global secondary indexes.
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

func (c *Config) setDefaults() {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&c.Tables.Journal, "journal")
	set(&c.Tables.Snapshot, "snapshot")
	set(&c.Tables.Checkpoint, "checkpoint")
	set(&c.Indexes.JournalAggregate, "journal-aid-index")
	set(&c.Indexes.SnapshotAggregate, "snapshot-aid-index")
	set(&c.Indexes.JournalTail, "journal-tail-index")
	set(&c.Attributes.PartitionKey, "pkey")
	set(&c.Attributes.SortKey, "skey")
	set(&c.Attributes.AggregateID, "aid")
	set(&c.Attributes.SequenceNumber, "seq_nr")
	set(&c.Attributes.Payload, "payload")
	set(&c.Attributes.OccurredAt, "occurred_at")
	set(&c.Attributes.Version, "version")
	set(&c.Attributes.TTL, "ttl")
	if c.Resolver == nil {
		c.Resolver = resolver.FNV1a
	}
	if c.Layout == "" {
		c.Layout = Classic
	}
	if c.OccurredAtUnit == 0 {
		c.OccurredAtUnit = time.Millisecond
	}
	if c.RetryBudget == 0 {
		c.RetryBudget = 5 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
}

// Validate reports what cannot work, as a [*ConfigError].
func (c Config) Validate() error {
	c.setDefaults()
	if c.Shards < 0 || c.Shards > maxShards {
		return &ConfigError{Field: "Shards", Reason: fmt.Sprintf("%d is not between 1 and %d", c.Shards, maxShards)}
	}
	if c.RetryBudget < 0 {
		return &ConfigError{Field: "RetryBudget", Reason: "is negative"}
	}
	if c.CommandRetention < 0 {
		return &ConfigError{Field: "CommandRetention", Reason: "is negative: leave it 0 to keep commands forever"}
	}
	if err := c.Layout.validate(c); err != nil {
		return err
	}
	for _, names := range [][]named{
		{{"Tables.Journal", c.Tables.Journal}, {"Tables.Snapshot", c.Tables.Snapshot}, {"Tables.Checkpoint", c.Tables.Checkpoint}},
		{{"Indexes.JournalAggregate", c.Indexes.JournalAggregate}, {"Indexes.JournalTail", c.Indexes.JournalTail}},
		{{"Indexes.SnapshotAggregate", c.Indexes.SnapshotAggregate}},
	} {
		for _, n := range names {
			if !dynamoName.MatchString(n.name) {
				return &ConfigError{Field: n.field, Reason: fmt.Sprintf("%q is not a name of 3 to 255 letters, digits and _.-", n.name)}
			}
		}
		if err := distinct(names); err != nil {
			return err
		}
	}
	if err := validateUnit(c.OccurredAtUnit); err != nil {
		return err
	}
	if err := c.validateEncodings(); err != nil {
		return err
	}
	return distinct(c.attributeNames())
}

var dynamoName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

type named struct{ field, name string }

func distinct(names []named) error {
	owner := map[string]string{}
	for _, n := range names {
		if other, taken := owner[n.name]; taken {
			return &ConfigError{Field: n.field, Reason: fmt.Sprintf("is %q, as is %s: give each a name of its own", n.name, other)}
		}
		owner[n.name] = n.field
	}
	return nil
}

// attributeNames are all attributes of the store, those with fixed names first, so
// that no setting can make two of them one.
func (c Config) attributeNames() []named {
	names := []named{
		{"the event id", attrEventID},
		{"the event type", attrEventType},
		{"the metadata", metadata.Attribute},
		{"the metadata that is not text", metadata.BinaryAttribute},
		{"the commit id", attrCommitID},
		{"the encoding", attrEncoding},
		{"the snapshot's number", attrSnapshotNumber},
		{"the snapshot's digest", attrSnapshotDigest},
		{"the snapshot's schema", attrSnapshotSchema},
		{"the list of redundant snapshots", attrRedundant},
		{"the place of truncation", attrTruncatedBefore},
		{"the time of deletion", attrDeletedAt},
		{"the command id", attrCommandID},
		{"a command's first event", attrCommitFirst},
		{"a command's version", attrCommitVersion},
	}
	for _, name := range []string{attrFormat, attrShards, attrResolver, attrSnapshotTable, attrAttributes, attrLayout, attrRequired, attrUnit, attrGrowths, attrRestored} {
		names = append(names, named{"the descriptor", name})
	}
	a := c.Attributes
	return append(names,
		named{"Attributes.PartitionKey", a.PartitionKey},
		named{"Attributes.SortKey", a.SortKey},
		named{"Attributes.AggregateID", a.AggregateID},
		named{"Attributes.SequenceNumber", a.SequenceNumber},
		named{"Attributes.Payload", a.Payload},
		named{"Attributes.OccurredAt", a.OccurredAt},
		named{"Attributes.Version", a.Version},
		named{"Attributes.TTL", a.TTL},
	)
}
