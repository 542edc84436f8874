package eventlog

import (
	"time"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// The data of the methods of [Log]. Package storage declares and describes these types.
type (
	// Commit is the argument of Append.
	Commit = storage.Commit[journal.Snapshot]
	// Joint is the argument of AppendJoint.
	Joint = storage.Joint[journal.Snapshot]
	// JointCommand is a stored command id of a [Joint], with the events that it wrote.
	JointCommand = storage.JointCommand
	// Place is an aggregate at a version.
	Place = storage.Place
	// JointPart is a part of a [JointCommand].
	JointPart = storage.JointPart
	// Event is an event of a [Commit].
	Event = storage.Event
	// Redundancy makes a [Commit] store its snapshot twice.
	Redundancy = storage.Redundancy
	// Receipt is the result of Append.
	Receipt = storage.Receipt
	// Command is a stored command id with its commit.
	Command = storage.Command
	// Commands are the command ids that a load found.
	Commands = storage.Commands
	// Loaded is the result of Load.
	Loaded = storage.Loaded
	// Cursor is a place in the tail of a shard.
	Cursor = storage.Cursor
	// TailQuery selects events of the tail of a shard.
	TailQuery = storage.TailQuery
	// HeadsOfShard selects the heads of a shard.
	HeadsOfShard = storage.HeadsOfShard
	// TailPage is a page of the tail of a shard.
	TailPage = storage.TailPage[journal.Record, journal.CorruptItemError]
	// Restoration is the argument of Restore.
	Restoration = storage.Restoration[journal.Head, journal.Record]
	// Inspection is the result of Inspect.
	Inspection = storage.Inspection[journal.Head, journal.CorruptItemError]
)

// Limits of one commit; see package storage.
const (
	MaxItemBytes   = storage.MaxItemBytes
	MaxCommitBytes = storage.MaxCommitBytes
	MaxActions     = storage.MaxActions
	MaxEvents      = storage.MaxEvents
	MaxEventsBytes = storage.MaxEventsBytes
)

// Reasons why a snapshot was left out of a commit; see [Receipt].
var (
	ErrNoRoom    = storage.ErrNoRoom
	ErrOldSchema = storage.ErrOldSchema
)

// ErrHasState reports that the aggregate of [Engine.Trim] belongs to a repository.
var ErrHasState = storage.ErrHasState

// ShardKey returns the partition key of a logical shard.
func ShardKey(aggregateType string, shard int) string { return storage.ShardKey(aggregateType, shard) }

// CursorAt returns the place before all events of the millisecond of t.
func CursorAt(t time.Time) Cursor { return storage.CursorAt(t) }
