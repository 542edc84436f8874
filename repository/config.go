package repository

import (
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
)

// Config adjusts a [Repository]. The zero value serves most applications.
type Config struct {
	// Snapshots chooses the commits that store the state beside their events. Default: Every(100).
	Snapshots SnapshotPolicy

	// IgnoreSnapshots makes loads replay all events and use no stored snapshot, neither that of the
	// head nor a redundant one. It is for programs that check snapshots, or cannot read those of
	// other programs. Which commits store a snapshot is up to Snapshots, also then. An aggregate
	// whose old events were removed by [Repository.Truncate] cannot be loaded. Default: false.
	IgnoreSnapshots bool

	// SnapshotSchema is a number of your own for the form of the state. A snapshot with another
	// number is not decoded: the journal is replayed, and the aggregate's next commit replaces a
	// snapshot with a lower one. Raise it whenever old snapshots would be misread: when a field
	// changes its meaning, is computed from old events, or when an upcaster changes. Default: 0.
	SnapshotSchema uint64

	// Redundancy stores each snapshot a second time, under its own sequence number, so that
	// [Repository.LoadAt] need not replay from the first event. Default: nil, which is off.
	Redundancy *Redundancy

	// Cache is how many aggregates the repository keeps in memory, those used last. Load then reads
	// the version alone and what is new since, and Execute decides on the kept state without
	// reading first. That is never less safe: the commit's condition notices what other writers did
	// meanwhile, and a decision that refuses or cannot be written is made again on what is stored.
	// Default: 0, none.
	//
	// What is kept is known by its version. A history that was put back from a backup and has grown
	// to the same version again, with other events, cannot be told from the one that is kept:
	// restart the processes that have a cache after tables were restored.
	Cache int

	// SnapshotCodec turns states into the bytes of snapshots and back. Default: the definition's
	// codec.
	SnapshotCodec SnapshotCodec

	// EventPayload returns what is stored of an event, for tables in which a program of the
	// event-store-adapter family reads too: it looks for id and number inside the payload.
	// EventInfo.Payload is the event as the definition's codec encodes it. The codec must decode
	// what EventPayload returns, as it must what the other program writes. An error fails the
	// commit before anything is written. Default: events are stored as the codec encodes them.
	EventPayload func(EventInfo) ([]byte, error)

	// UnknownEvents says what a load does with a stored event whose type the definition lacks, such
	// as one that a newer program has written. [SkipUnknown] lets decisions run on a state that
	// lacks its effect, so it is for programs whose decisions hold without it. Default:
	// [FailOnUnknown].
	UnknownEvents UnknownEvents

	// MaxAttempts is how often [Repository.Execute] and [Parts.Execute] load and decide, at most,
	// when other writers are faster. The pauses between attempts start at about 5 ms, double, and
	// stay at about 100 ms; those of the default take some 4.5 seconds together. Against one writer
	// who never pauses, an attempt fails about four times in five, so a number much below the
	// default gives up on aggregates that are merely busy. Default: 50.
	MaxAttempts int

	// Logger receives reports of snapshots that were left out of a commit or could not be used by a
	// load, and of events that [SkipUnknown] left out. Default: none.
	Logger watermill.LoggerAdapter
}

// Redundancy says how many redundant snapshots an aggregate has.
type Redundancy struct {
	// Keep is how many there are, at most 100. The oldest are deleted first, after the commit,
	// which is held up for a second at most; a failure goes to the Logger, and a later commit
	// deletes what is left. Default: 1.
	Keep int
	// TTL, if not 0, leaves deleting to DynamoDB: each one expires when that time has passed.
	// Nothing else deletes them then, and Keep says how many a load may use.
	TTL time.Duration
}

// maxKept bounds the list in the head, which every commit pays for.
const maxKept = 100

func (c *Config) setDefaults() {
	if c.Redundancy != nil {
		redundancy := *c.Redundancy
		if redundancy.Keep == 0 {
			redundancy.Keep = 1
		}
		c.Redundancy = &redundancy
	}
	if c.Snapshots == nil {
		c.Snapshots = Every(100)
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 50
	}
	if c.Logger == nil {
		c.Logger = watermill.NopLogger{}
	}
}

// Validate reports the first setting that cannot work, as a [*ConfigError].
func (c Config) Validate() error {
	if c.UnknownEvents != FailOnUnknown && c.UnknownEvents != SkipUnknown {
		return &ConfigError{Field: "UnknownEvents", Reason: fmt.Sprintf("is %d: use FailOnUnknown or SkipUnknown", c.UnknownEvents)}
	}
	if r := c.Redundancy; r != nil {
		if r.Keep < 0 || r.Keep > maxKept {
			return &ConfigError{Field: "Redundancy.Keep", Reason: fmt.Sprintf("is %d: keep 1 to %d, or leave Redundancy out", r.Keep, maxKept)}
		}
		if r.TTL < 0 {
			return &ConfigError{Field: "Redundancy.TTL", Reason: "is negative: leave it 0 to delete by Keep alone"}
		}
	}
	if c.Cache < 0 {
		return &ConfigError{Field: "Cache", Reason: "is negative: leave it 0 for none"}
	}
	if c.MaxAttempts < 0 {
		return &ConfigError{Field: "MaxAttempts", Reason: "is negative: leave it 0 for the default, 1 to return every conflict"}
	}
	return nil
}
