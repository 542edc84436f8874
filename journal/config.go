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
	// Tables are the names in DynamoDB.
	Tables Tables

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

	// Layout selects how events and snapshots are stored: [Packed] for new applications, [Classic]
	// for tables that programs of the event-store-adapter family share. [Create] and [Schema] need
	// it, and it can never be changed afterwards. [Open] takes it from the descriptor, and refuses
	// another one. [Adopt] always takes Classic.
	Layout Layout

	// Classic holds what only concerns tables that another program has created or also uses. The
	// layout Packed refuses each field that is set. Default: no field is set, which is right for
	// new tables.
	Classic ClassicOptions

	// CommandRetention is how long the journal remembers the command id of a commit, at least.
	// DynamoDB's time to live or, in the layout Packed, a later snapshot removes it afterwards. The
	// end is stored with the id. So programs that share a journal may have different retentions,
	// and a change does not affect ids that are stored. Default: 0, which keeps ids forever, at
	// about 200 bytes each.
	CommandRetention time.Duration

	// EventType returns the type of a stored event that has none. Programs of the
	// event-store-adapter family store the type somewhere in the payload. Their events keep that
	// form if they are moved to other tables. So tables in the layout Packed can need it too.
	// EventType must not change the record. An error fails the read with an [*EventTypeError].
	// Default: nil; such events have no type, and only readers that need no type can use them.
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
	// The loads and commits of one call of repository.Repository.Execute, or of a transaction of
	// several aggregates, share one budget. Only the time of failed requests and of pauses counts.
	// The first attempt at a request is always sent. The snapshot that the layout Packed writes
	// after a commit has a budget of its own.
	//
	// The process limits how often it repeats throttled commits. A repetition takes a token, and
	// each success returns one. A commit without a token waits for one within the budget. There is
	// a quota for the journal (100 tokens) and one for each shard (50). Both get 10 tokens a
	// second, so that a caller that is alone is served too.
	//
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
	// its id. repository.WithCommandContent needs UUIDs, and changes the last 6 bytes of some.
	// Default: random UUIDs.
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
	indexes, attributes := &c.Classic.Indexes, &c.Classic.Attributes
	set(&indexes.JournalAggregate, "journal-aid-index")
	set(&indexes.SnapshotAggregate, "snapshot-aid-index")
	set(&indexes.JournalTail, "journal-tail-index")
	set(&attributes.PartitionKey, "pkey")
	set(&attributes.SortKey, "skey")
	set(&attributes.AggregateID, "aid")
	set(&attributes.SequenceNumber, "seq_nr")
	set(&attributes.Payload, "payload")
	set(&attributes.OccurredAt, "occurred_at")
	set(&attributes.Version, "version")
	set(&attributes.TTL, "ttl")
	if c.Classic.Resolver == nil {
		c.Classic.Resolver = resolver.FNV1a
	}
	if c.Layout == "" {
		c.Layout = Classic
	}
	if c.Classic.OccurredAtUnit == 0 {
		c.Classic.OccurredAtUnit = time.Millisecond
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
			Tables: c.Tables, Shards: c.Shards, ClassicOptions: c.Classic, CommandRetention: c.CommandRetention,
			RetryBudget: c.RetryBudget, Throughput: c.Throughput, Now: c.Now, NewID: c.NewID,
		},
		Layout: c.Layout, EventType: c.EventType, Encodings: c.Encodings, RequiredEncodings: c.RequiredEncodings,
	}
}

// configOf reverses Config.settings. Tables can be opened with the result.
func configOf(s *engine.Settings) Config {
	c := Config{
		Tables: s.Tables, Shards: s.Shards, Classic: s.ClassicOptions, CommandRetention: s.CommandRetention,
		RetryBudget: s.RetryBudget, Throughput: s.Throughput, Now: s.Now, NewID: s.NewID,
		Layout: s.Layout, EventType: s.EventType, Encodings: s.Encodings, RequiredEncodings: s.RequiredEncodings,
	}
	if c.Layout == Packed {
		c.Classic = ClassicOptions{}
	}
	return c
}

// Validate returns a [*ConfigError] for the first setting that cannot work, and nil if there is
// none.
func (c Config) Validate() error {
	if c.Layout != "" {
		if err := checkLayout(c.Layout, c.Classic); err != nil {
			return err
		}
	}
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
	x := c.Classic.Indexes
	for _, names := range [][]named{
		{{"Tables.Journal", c.Tables.Journal}, {"Tables.Snapshot", c.Tables.Snapshot}, {"Tables.Checkpoint", c.Tables.Checkpoint}},
		{{"Classic.Indexes.JournalAggregate", x.JournalAggregate}, {"Classic.Indexes.JournalTail", x.JournalTail}},
		{{"Classic.Indexes.SnapshotAggregate", x.SnapshotAggregate}},
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
	if err := table.ValidateUnit(c.Classic.OccurredAtUnit); err != nil {
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

// attributeNames returns all attributes of the journal. Those with fixed names come first, so that
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
	a := c.Classic.Attributes
	return append(names,
		named{"Classic.Attributes.PartitionKey", a.PartitionKey},
		named{"Classic.Attributes.SortKey", a.SortKey},
		named{"Classic.Attributes.AggregateID", a.AggregateID},
		named{"Classic.Attributes.SequenceNumber", a.SequenceNumber},
		named{"Classic.Attributes.Payload", a.Payload},
		named{"Classic.Attributes.OccurredAt", a.OccurredAt},
		named{"Classic.Attributes.Version", a.Version},
		named{"Classic.Attributes.TTL", a.TTL},
	)
}
