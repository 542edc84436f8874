package journal

import (
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// These types belong to package journaltype, which the packages below this one share.
type (
	// Client is the part of *dynamodb.Client that the journal uses.
	Client = journaltype.Client
	// Record is one stored event.
	Record = journaltype.Record
	// Head describes an aggregate without its events.
	Head = journaltype.Head
	// HeadsQuery selects heads for [Journal.Heads].
	HeadsQuery = journaltype.HeadsQuery
	// Snapshot is the encoded state of an aggregate after one of its events.
	Snapshot = journaltype.Snapshot
	// RemoveOptions configures how [Journal.Truncate] and [Journal.Delete] remove events.
	RemoveOptions = journaltype.RemoveOptions
	// Encoding encodes payloads before they are stored, and decodes them. Packages compress and
	// encrypt contain implementations.
	Encoding = journaltype.Encoding
	// Place identifies the event or snapshot that a payload belongs to.
	Place = journaltype.Place
	// Layout selects how a journal stores events and snapshots in its tables.
	Layout = journaltype.Layout
	// ClassicOptions holds settings for tables that another program has created or also uses.
	ClassicOptions = journaltype.ClassicOptions
	// KeyResolver maps an aggregate to one of the logical shards. Package resolver has
	// implementations.
	KeyResolver = journaltype.KeyResolver
	// Tables names the tables of a journal.
	Tables = journaltype.Tables
	// Indexes names the global secondary indexes of the tables.
	Indexes = journaltype.Indexes
	// Attributes names the attributes that the event-store-adapter schema defines.
	Attributes = journaltype.Attributes
)

// The layouts.
const (
	// Classic is the layout of the event-store-adapter family.
	Classic = journaltype.Classic
	// Packed is the layout with one item for each commit, for programs of this module only.
	Packed = journaltype.Packed
)
