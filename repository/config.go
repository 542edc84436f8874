package repository

import (
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
)

// Config configures a [Repository]. The zero value serves most applications.
type Config struct {
	// Snapshots chooses the commits that store the state together with their events. Default: nil,
	// by cost: a commit stores the state if that costs less than it saves, by what the load of the
	// aggregate has replayed. docs/design/writing.md has the rule. In the layout journal.Packed, a
	// commit on a state from the Cache, or on the result of an earlier commit, stores none. With
	// Redundancy or IgnoreSnapshots the default is Every(100). It is also Every(100) for an
	// aggregate whose snapshot has a later SnapshotSchema.
	//
	// Set it to [Every] for tables that a program of the event-store-adapter family also loads
	// from: such a program needs a snapshot for each MB of events, which the default does not
	// ensure.
	Snapshots SnapshotPolicy

	// IgnoreSnapshots makes loads replay all events. They use no stored snapshot, neither the one
	// in the head nor a redundant one. Set it in programs that check snapshots, or that cannot read
	// the snapshots of other programs. Snapshots still chooses the commits that store one. An
	// aggregate whose old events were removed by [Repository.Truncate] cannot be loaded. Default:
	// false.
	IgnoreSnapshots bool

	// SnapshotSchema is a version number of the state's form, which the application chooses. A
	// snapshot with another number is not decoded: the load replays the events, and the next commit
	// of the aggregate replaces a snapshot with a lower number. Increase it whenever old snapshots
	// would be misread: when the meaning of a field changes, when a field is computed from old
	// events, or when an upcaster changes. Default: 0.
	SnapshotSchema uint64

	// Redundancy stores each snapshot a second time, under its own sequence number, so that
	// [Repository.LoadAtVersion] need not replay from the first event. Default: nil, no redundant
	// snapshots.
	Redundancy *Redundancy

	// Cache is the number of aggregates that the repository keeps in memory, the most recently used
	// ones. Load then reads only the version and new events, and Execute decides on the cached
	// state without reading first. This is as safe as without a cache: the condition of the commit
	// detects other writers. A decision that refuses, or whose commit fails, is repeated on the
	// stored state. Default: 0, no cache.
	//
	// A cached state is identified by its version. Suppose that a history is restored from a backup
	// and grows to the same version again with other events. The repository cannot distinguish it
	// from the cached one. So restart all processes with a cache after tables were restored.
	Cache int

	// SnapshotCodec encodes states as the bytes of snapshots and decodes them. Default: the codec
	// of the definition.
	SnapshotCodec SnapshotCodec

	// EventPayload returns the stored payload of an event. Set it for tables that a program of the
	// event-store-adapter family also reads: such a program expects id and number inside the
	// payload. EventInfo.Payload is the event in the encoding of the definition's codec. The codec
	// must be able to decode the result of EventPayload, and the events of the other program. An
	// error fails the commit before anything is written. Default: events are stored as the codec
	// encodes them.
	EventPayload func(EventInfo) ([]byte, error)

	// UnknownEvents says what a load does with a stored event whose type the definition lacks, for
	// example one that a newer program has written. With [SkipUnknown], decisions run on a state
	// without the effect of the event. Use it only in programs whose decisions stay correct then.
	// Default: [FailOnUnknown].
	UnknownEvents UnknownEvents

	// MaxAttempts limits how often [Repository.Execute] and [Transaction.Execute] load and decide
	// when other writers are faster. A pause is as long as the attempt took, at least 2 ms, times
	// the number of new events, up to 8. It doubles with each attempt, up to about 100 ms; with the
	// default the pauses take up to 4.9 seconds in total. Against one writer that never pauses,
	// about four in five attempts fail. So a number far below the default fails for aggregates that
	// are only busy. Default: 50.
	MaxAttempts int

	// Middleware, if set, wraps each Execute and Save, and each Execute of a [Transaction] whose
	// first participant with a middleware is of this repository. Default: none.
	Middleware Middleware

	// Logger receives reports of snapshots that a commit did not store or a load could not use, and
	// of events that [SkipUnknown] skipped. Default: none.
	Logger watermill.LoggerAdapter
}

// Redundancy configures the redundant snapshots of an aggregate.
type Redundancy struct {
	// Keep is the number of redundant snapshots, at most 100. The oldest are deleted first, after
	// the commit. This delays the return of the call by at most a second. A failure is logged, and
	// a later commit deletes the rest. Default: 1.
	Keep int
	// TTL, if not 0, lets DynamoDB delete each redundant snapshot when that time has passed. The
	// repository then deletes none, and Keep is the number of snapshots that a load may use.
	// Default: 0.
	TTL time.Duration
}

// maxKept limits the list in the head, since every commit writes the head.
const maxKept = 100

func (c *Config) setDefaults() {
	if c.Redundancy != nil {
		redundancy := *c.Redundancy
		if redundancy.Keep == 0 {
			redundancy.Keep = 1
		}
		c.Redundancy = &redundancy
	}
	// A load that ignores snapshots always replays all events, so a snapshot would always seem to
	// pay.
	if c.Snapshots == nil && (c.Redundancy != nil || c.IgnoreSnapshots) {
		c.Snapshots = Every(100)
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 50
	}
	if c.Logger == nil {
		c.Logger = watermill.NopLogger{}
	}
}

// validate returns a [*ConfigError] for the first setting that cannot work.
func (c Config) validate() error {
	if c.UnknownEvents != FailOnUnknown && c.UnknownEvents != SkipUnknown {
		return &ConfigError{Field: "UnknownEvents", Reason: fmt.Sprintf("is %d: use FailOnUnknown or SkipUnknown", c.UnknownEvents)}
	}
	if r := c.Redundancy; r != nil {
		if r.Keep < 0 || r.Keep > maxKept {
			return &ConfigError{Field: "Redundancy.Keep", Reason: fmt.Sprintf("is %d: keep 1 to %d, or omit Redundancy", r.Keep, maxKept)}
		}
		if r.TTL < 0 {
			return &ConfigError{Field: "Redundancy.TTL", Reason: "is negative: set it to 0 to delete by Keep alone"}
		}
	}
	if c.Cache < 0 {
		return &ConfigError{Field: "Cache", Reason: "is negative: set it to 0 for no cache"}
	}
	if c.MaxAttempts < 0 {
		return &ConfigError{Field: "MaxAttempts", Reason: "is negative: set it to 0 for the default, or to 1 to return every conflict"}
	}
	return nil
}
