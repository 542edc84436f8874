package journal

import (
	"fmt"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/resolver"
)

// Config names the tables and describes how they are used. The zero value opens tables that were
// created with default names.
type Config struct {
	// Tables and Indexes are the names in DynamoDB.
	Tables  Tables
	Indexes Indexes

	// Attributes are the names of the attributes that the event-store-adapter schema defines.
	Attributes Attributes

	// Shards is the number of logical shards over which each aggregate type is spread, 1 to 65,536.
	// [Create] and [Adopt] need it, and it can never be changed afterwards. Choose one for each 250
	// events a second that you expect, 16 if you do not know. [Open] takes the number from the
	// descriptor, and refuses another one.
	//
	// A partition of DynamoDB accepts 1,000 write units a second. In the layout Classic a shard
	// therefore accepts about 500 commits a second, and fewer if states are larger than 1 KB, since
	// each commit also writes the state. In the layout Packed a shard accepts 1,000 commits a
	// second, more after [Journal.GrowTail], and 1,000 new aggregates. In both layouts, a consumer
	// group stores the positions of 500 to 1,000 aggregates a second in each shard. GrowTail does
	// not raise that number. Every consumer group polls every shard. See
	// docs/operations/scaling.md.
	Shards int

	// Resolver maps an aggregate to its shard. Default: resolver.FNV1a, which is right for new
	// tables. [Adopt] needs the resolver of the application that made the tables.
	Resolver KeyResolver

	// Layout selects how events and snapshots are stored: [Packed] for new applications, [Classic]
	// for tables that programs of the event-store-adapter family share. [Create] and [Schema] need
	// it, and it can never be changed afterwards. [Open] takes it from the descriptor, and refuses
	// another one. [Adopt] always takes Classic.
	Layout Layout

	// CommandRetention is how long the journal remembers the command id of a commit, at least.
	// DynamoDB's time to live or, in the layout Packed, a later snapshot removes it afterwards. The
	// end is stored with the id. So programs that share a journal may have different retentions,
	// and a change does not affect ids that are stored. Default: 0, which keeps ids forever, at
	// about 200 bytes each.
	CommandRetention time.Duration

	// EventType returns the type of a stored event that has none. It is for tables to which a
	// program of the event-store-adapter family also writes: that program stores the type somewhere
	// in the payload. EventType must not change the record. An error fails the read with an
	// [*EventTypeError]. Default: nil; such events have no type, and only readers that need no type
	// can use them.
	EventType func(*Record) (string, error)

	// Throughput makes [Create] provision the tables and their indexes. Default: nil, which selects
	// on-demand capacity.
	Throughput *types.ProvisionedThroughput

	// Encodings encode payloads before they are stored, in this order, and decode them in reverse
	// order. Each item records which encodings were applied to it. So you can add an encoding to a
	// journal that is in use, or change the order. A payload can only be read with all encodings
	// that were applied to it; see [ForReading] for how to introduce or retire one. Programs of the
	// event-store-adapter family can only read payloads without encodings. Event types and metadata
	// are never encoded. Default: none.
	Encodings []Encoding

	// OccurredAtUnit is the unit of the stored times of events since 1970: time.Second,
	// time.Millisecond, time.Microsecond or time.Nanosecond. It is for tables to which another
	// program also writes. Records have milliseconds in any case. With seconds, an event can arrive
	// up to subscriber.Timing.TrailingDelay late.
	//
	// [Create] stores it; default: time.Millisecond. [Adopt] stores it too. Its default is the unit
	// of the sampled events, if there are any, and it refuses a unit that no sampled event has.
	// [Open] takes it from the descriptor, and refuses another one.
	OccurredAtUnit time.Duration

	// RequiredEncodings names encodings that every payload must have. The journal does not write an
	// event or a snapshot that lacks one. Readers refuse it with an [*EncodingError]. So a program
	// that can write to the tables cannot replace an encrypted payload with a plain one. Name only
	// encodings that apply to every payload: encryption does, compression does not.
	//
	// [Create] stores the names. [Open] takes them from the descriptor, and refuses others. Name
	// them in [Open] too if other programs can change the descriptor. [Adopt] refuses them, since
	// the events of other programs are plain. Default: none.
	RequiredEncodings []string

	// RetryBudget is how long a commit repeats its request if DynamoDB throttled it, if it met
	// another transaction, or if its reply was lost. The deadline of the context ends it earlier.
	// Default: 5 seconds. It must be well below subscriber.Timing.TrailingDelay.
	RetryBudget time.Duration

	// Now is the clock that dates events. Subscribers also use it to decide what is past. Default:
	// time.Now, corrected by the times in DynamoDB's replies if the clock is known to be wrong. At
	// first it corrects errors of a second or more. Later it corrects errors that exceed a round
	// trip by some milliseconds. A clock of your own must be as exact. An event with a wrong date
	// can reach subscribers up to a week late in the layout Packed, and up to
	// subscriber.Timing.ReconcileInterval late in Classic.
	Now func() time.Time

	// NewID makes commit ids of 1 to 36 characters, which is DynamoDB's limit for a
	// ClientRequestToken. It must never return the same id twice, because a commit is recognized by
	// its id. Default: random UUIDs.
	NewID func() string
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
	if c.NewID == nil {
		c.NewID = uuid.NewString
	}
}

// settings returns the settings of an engine. The defaults must be set.
func (c *Config) settings() engine.Settings {
	return engine.Settings{
		Settings: table.Settings{
			Tables: c.Tables, Indexes: c.Indexes, Attributes: c.Attributes, Shards: c.Shards, Resolver: c.Resolver,
			CommandRetention: c.CommandRetention, OccurredAtUnit: c.OccurredAtUnit, RetryBudget: c.RetryBudget,
			Throughput: c.Throughput, Now: c.Now, NewID: c.NewID,
		},
		Layout: c.Layout, EventType: c.EventType, Encodings: c.Encodings, RequiredEncodings: c.RequiredEncodings,
	}
}

// configOf reverses Config.settings.
func configOf(s *engine.Settings) Config {
	return Config{
		Tables: s.Tables, Indexes: s.Indexes, Attributes: s.Attributes, Shards: s.Shards, Resolver: s.Resolver,
		CommandRetention: s.CommandRetention, OccurredAtUnit: s.OccurredAtUnit, RetryBudget: s.RetryBudget,
		Throughput: s.Throughput, Now: s.Now, NewID: s.NewID,
		Layout: s.Layout, EventType: s.EventType, Encodings: s.Encodings, RequiredEncodings: s.RequiredEncodings,
	}
}

// Validate returns a [*ConfigError] for the first setting that cannot work, and nil if there is
// none.
func (c Config) Validate() error {
	c.setDefaults()
	if c.Shards < 0 || c.Shards > table.MaxShards {
		return &ConfigError{Field: "Shards", Reason: fmt.Sprintf("%d is not between 1 and %d", c.Shards, table.MaxShards)}
	}
	if c.RetryBudget < 0 {
		return &ConfigError{Field: "RetryBudget", Reason: "is negative"}
	}
	if c.CommandRetention < 0 {
		return &ConfigError{Field: "CommandRetention", Reason: "is negative: leave it 0 to keep commands forever"}
	}
	s := c.settings()
	if err := checkLayout(&s); err != nil {
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
	if err := table.ValidateUnit(c.OccurredAtUnit); err != nil {
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
			return &ConfigError{Field: n.field, Reason: fmt.Sprintf("is %q, like %s: use different names", n.name, other)}
		}
		owner[n.name] = n.field
	}
	return nil
}

// AttributeNames returns all attributes of the journal. Those with fixed names come first, so that
// the error names the setting that repeats one of them.
func (c Config) attributeNames() []named {
	var names []named
	for _, kind := range layouts {
		for _, r := range kind.Reserved {
			names = append(names, named{r.What, r.Name})
		}
	}
	for _, name := range engine.DescriptorNames {
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
