package storage

import (
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Reasons why a snapshot was left out of a commit; see [Receipt].
var (
	// ErrNoRoom reports that the transaction was full.
	ErrNoRoom = errors.New("no room in the transaction")
	// ErrOldSchema reports that the snapshot would have replaced one of a later schema that stands
	// for truncated events.
	ErrOldSchema = errors.New("snapshot of an earlier schema")
)

// ErrHasState reports that an aggregate cannot be trimmed because it has a snapshot, which means
// that it belongs to a repository.
var ErrHasState = errors.New("the aggregate has a snapshot, so it is not a publisher's own stream")

// Event is an event to be stored.
type Event struct {
	ID       string // empty if it should be derived from the place
	Type     string
	Payload  []byte
	Metadata aggregate.Metadata
	// Encoding, if not empty, means that Payload is encoded already, in the form in which a raw
	// journal reads it. The journal then stores it unchanged.
	Encoding string
	// OwnStream marks the event of a message of a queue, which a trim may remove. The journal
	// stores the mark, and does not store one that Metadata contains.
	OwnStream bool
}

// Commit holds the changes that one transaction writes to one aggregate. It has at most
// [MaxActions]: one for the head, one for each event and each of Writes, one for a CommandID and
// one for a [Redundancy].
type Commit struct {
	Aggregate aggregate.ID
	// Expected is the version that the head must have, 0 for a new aggregate.
	Expected uint64
	// Proven means that this process has read or written Expected as the number of the aggregate's
	// last event: by a Load, a Receipt, or a conflict's Actual. A number from another source, such
	// as the caller, is not proven: the packed layout then reads the last commit first. 0 is always
	// proven, because no event can precede the first one. The classic layout needs no proof.
	Proven bool
	// Commands, if not nil, are the aggregate's command ids at the version Expected, from a Load or
	// a Receipt. If it is nil, the packed layout reads them where it needs them.
	Commands *Commands
	// Events get the sequence numbers from Expected+1. There are 1 to [MaxEvents] events. There may
	// be none only if there is a CommandID.
	Events []Event
	// Snapshot, if any, is stored together with the events. The journal leaves it out if an item or
	// the transaction has no room for it; see [Receipt].
	Snapshot *journaltype.Snapshot
	// Worth, if any, lets the journal store the snapshot only if that pays.
	Worth *Worth
	// Redundancy, if any, also stores the snapshot under its own number.
	Redundancy *Redundancy
	// CommandID, if any, makes the journal refuse a second commit of the same aggregate with the
	// same id, with a *journal.DuplicateCommandError. It has 1 to 512 bytes of UTF-8.
	CommandID string
	// Fingerprint, if any, becomes a part of the commit id. It is that of the CommandID, or of the
	// CommandID of the Joint.
	Fingerprint *Fingerprint
	// ReadsOn means that the caller reads the new commits after a conflict, and searches them for
	// the CommandID. So the Actual of a conflict may be lower than the version.
	ReadsOn bool
	// Writes are additional actions of the same transaction, on tables of the caller or on rows of
	// other aggregates. Examples are an outbox row, or a guard that makes an email address unique.
	// The journal sends them unchanged. If the condition of one is false, the commit fails with a
	// *journal.WriteRefusedError, unless it is a conflict or a duplicate.
	Writes []types.TransactWriteItem
}

// Version returns the version of the head after the commit.
func (c *Commit) Version() uint64 { return c.Expected + uint64(len(c.Events)) }

// Joint holds the changes that one transaction writes to several aggregates: all of them, or
// nothing.
type Joint struct {
	// Parts are for different aggregates. A part without events writes nothing: its aggregate must
	// still be at version Expected, and must not be deleted. Parts have no CommandID.
	Parts []Commit
	// CommandID, if any, makes the journal refuse a second commit with the same id, whatever its
	// parts are. It has 1 to 512 bytes of UTF-8. If it is empty, at least one part must have
	// events.
	CommandID string
}

// Redundancy makes a commit store its snapshot twice: as the latest one, and under its own sequence
// number. The redundant snapshots let a repository load earlier versions of an aggregate.
//
// The head lists them, so they do not have to be counted. The caller removes the rows beyond Keep
// after the commit, with RemoveSnapshots. The transaction of a later commit deletes those that
// still exist.
type Redundancy struct {
	// Listed is the head's Redundant at the version Expected, empty but not nil if there are none.
	// Nil means unknown: the snapshot is added and nothing is removed.
	Listed []uint64
	// Keep is how many snapshots the aggregate keeps, 1 or more. The oldest are removed first.
	Keep int
	// TTL, if not 0, makes DynamoDB delete each row after this time, usually within two further
	// days and free of charge. Nothing else then removes the rows. The table needs time to live on
	// its TTL attribute, which journal.Create turns on. DynamoDB does not delete rows that were
	// stored before a TTL was set: delete the ones that the head lists.
	TTL time.Duration
}

// Receipt describes a written commit.
type Receipt struct {
	CommitID string
	Version  uint64 // of the head after the commit
	// OccurredAt is the time of the events as it is stored: milliseconds, in UTC.
	OccurredAt time.Time
	// Commands are the aggregate's command ids after the commit, in the packed layout, if known.
	Commands *Commands
	// SnapshotLeftOut means that the snapshot was not stored. SnapshotError has the reason: a
	// *journal.TooLargeError if it is over 400 KB, [ErrNoRoom], [ErrOldSchema] or a
	// *journal.EncodingError. The events are written anyway, and a load replays more of them.
	SnapshotLeftOut bool
	SnapshotError   error
	// SnapshotDeclined means that the snapshot was not stored because of [Commit].Worth.
	SnapshotDeclined bool
	// Head is the size of the head after the commit, in the classic layout, if known.
	Head HeadSize
	// Redundant lists the redundant snapshots in the head after the commit, without the commit's
	// own if there was no room for it. Surplus lists those beyond [Redundancy.Keep], which the
	// caller removes with RemoveSnapshots. Both are in ascending order. Both are nil if the commit
	// has no Redundancy, or one whose list is not known.
	Redundant, Surplus []uint64
}

// Place is an aggregate at a version.
type Place struct {
	Aggregate aggregate.ID
	Version   uint64
	// Kept means that the version was read some time ago, so the tables may have been restored
	// since.
	Kept bool
}

// JointCommand is an executed command for several aggregates, as the journal stores it.
type JointCommand struct {
	ID       string
	CommitID string
	// Parts are the commits to the aggregates, none for a command without events.
	Parts []JointPart
}

// VersionOf returns the number of the last event that the command wrote to an aggregate, and 0 if
// it wrote none.
func (c JointCommand) VersionOf(id aggregate.ID) uint64 {
	for _, p := range c.Parts {
		if p.Aggregate == id {
			return p.Version
		}
	}
	return 0
}

// JointPart is the part of one aggregate. First and Version are the numbers of its first and last
// event.
type JointPart struct {
	Aggregate      aggregate.ID
	First, Version uint64
}

// Command is an executed command as the journal stores it, with the commit that it led to.
type Command struct {
	ID       string
	CommitID string
	// First and Version are the numbers of the commit's first and last event. For a command without
	// events, First is Version+1.
	First, Version uint64
}
