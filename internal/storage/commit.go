package storage

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

// Reasons why a snapshot was left out of a commit; see [Receipt].
var (
	// ErrNoRoom: the transaction was full.
	ErrNoRoom = errors.New("no room in the transaction")
	// ErrOldSchema: the snapshot would have replaced one of a later schema, which alone stands for
	// truncated events.
	ErrOldSchema = errors.New("snapshot of an earlier schema")
)

// ErrHasState refuses to trim an aggregate that has a snapshot: it belongs to a repository.
var ErrHasState = errors.New("the aggregate has a snapshot, so it is not a publisher's own stream")

// Event is an event to be stored.
type Event struct {
	ID       string // empty for one derived from its place
	Type     string
	Payload  []byte
	Metadata aggregate.Metadata
	// Encoding, if not empty, says that Payload is encoded already, in the form in which a raw
	// journal reads it. The journal then stores it unchanged.
	Encoding string
}

// Commit is what one transaction writes to one aggregate. It has at most [MaxActions]: one for the
// head, one for each event and each of Writes, one for a CommandID and one for a [Redundancy].
// Snapshot is journal.Snapshot; see the package comment.
type Commit[Snapshot any] struct {
	Aggregate aggregate.ID
	// Expected is the version that the head must have, 0 for a new aggregate.
	Expected uint64
	// Proven: Expected is the number of the aggregate's last event as this process has read or
	// written it: a Load, a Receipt, a conflict's Actual. A number that comes from anywhere else,
	// such as the caller's, is not proven: the packed layout reads the last commit before it trusts
	// it. 0 always is, since no event can be before the first one. The classic layout needs no
	// proof.
	Proven bool
	// Commands, if not nil, are the aggregate's command ids at the version Expected, as a Load or a
	// Receipt has them. The packed layout reads them where it needs them and they are not given.
	Commands *Commands
	// Events get the sequence numbers from Expected+1 on. 1 to [MaxEvents]; none only where there
	// is a CommandID.
	Events []Event
	// Snapshot, if any, is stored beside the events. The journal leaves it out if an item or the
	// transaction has no room for it; see [Receipt].
	Snapshot *Snapshot
	// Redundancy, if any, also stores the snapshot under its own number.
	Redundancy *Redundancy
	// CommandID, if any, makes the journal refuse a second commit of the same aggregate with the
	// same id, with a *journal.DuplicateCommandError. 1 to 512 bytes of UTF-8.
	CommandID string
	// Writes are further actions of the same transaction, on tables of the caller's or on rows of
	// other aggregates: an outbox row, a guard that makes an e-mail address unique. The journal
	// sends them unchanged. One whose condition is false refuses the commit with a
	// *journal.WriteRefusedError, if it is neither a conflict nor a duplicate.
	Writes []types.TransactWriteItem
}

// Version is that of the head after the commit.
func (c *Commit[Snapshot]) Version() uint64 { return c.Expected + uint64(len(c.Events)) }

// Joint is what one transaction writes to several aggregates, all of it or nothing.
type Joint[Snapshot any] struct {
	// Parts are of different aggregates. One without events writes nothing: its aggregate must
	// still be at version Expected, and must not be deleted. Parts have no CommandID.
	Parts []Commit[Snapshot]
	// CommandID, if any, makes the journal refuse a second commit with the same id, whatever its
	// parts are. 1 to 512 bytes of UTF-8. Without it, a part at least has events.
	CommandID string
}

// Redundancy makes a commit store its snapshot twice: where the latest one is, and under its own
// sequence number. Those that are kept let a repository load an aggregate as it was.
//
// The head lists them, so nothing has to be counted. The caller removes the rows beyond Keep after
// the commit, with the method RemoveSnapshots; a later commit's own transaction deletes those that
// are still there.
type Redundancy struct {
	// Listed is the head's Redundant at the version Expected, empty but not nil if there are none.
	// Nil means unknown: the snapshot is added and nothing is removed.
	Listed []uint64
	// Keep is how many the aggregate has, 1 or more. The oldest go first.
	Keep int
	// TTL, if not 0, makes DynamoDB delete each row when that time has passed, usually within two
	// days, and free of charge. Nothing else removes them then; the table needs time to live on its
	// TTL attribute, which journal.Create turns on. Rows from before there was a TTL have none:
	// remove those that the head lists once.
	TTL time.Duration
}

// Receipt says what a commit wrote.
type Receipt struct {
	CommitID   string
	Version    uint64    // of the head now
	OccurredAt time.Time // of the events, as it is stored: milliseconds, in UTC
	// Commands are the aggregate's command ids now, in the packed layout and where they are known.
	Commands *Commands
	// SnapshotLeftOut: the snapshot was not stored. SnapshotError says why: a
	// *journal.TooLargeError if it is over 400 KB, [ErrNoRoom], [ErrOldSchema] or a
	// *journal.EncodingError. The events are written all the same; a load replays more of them.
	SnapshotLeftOut bool
	SnapshotError   error
	// Redundant are the redundant snapshots that the head lists now, without the commit's own where
	// there was no room for it, and Surplus those of them beyond [Redundancy.Keep], which the
	// caller removes with RemoveSnapshots. Both are in ascending order, and nil for a commit
	// without Redundancy or with one whose list is not known.
	Redundant, Surplus []uint64
}

// Place is an aggregate at a version.
type Place struct {
	Aggregate aggregate.ID
	Version   uint64
	// Kept: the version was read some time ago. The tables may have been restored since.
	Kept bool
}

// JointCommand is what the journal knows of a command of several aggregates that was executed.
type JointCommand struct {
	ID       string
	CommitID string
	// Parts are the commits to the aggregates that it wrote to, none for a command without events.
	Parts []JointPart
}

// VersionOf returns the number of the last event that the command has written to an aggregate, 0 if
// it has written none.
func (c JointCommand) VersionOf(id aggregate.ID) uint64 {
	for _, p := range c.Parts {
		if p.Aggregate == id {
			return p.Version
		}
	}
	return 0
}

// JointPart is the part of one aggregate: First and Version are the numbers of its first and last
// event.
type JointPart struct {
	Aggregate      aggregate.ID
	First, Version uint64
}

// Command is what the journal knows of a command that was executed: which commit came of it.
type Command struct {
	ID       string
	CommitID string
	// First and Version are the numbers of the commit's first and last event. A command without
	// events has a First that is Version+1.
	First, Version uint64
}
