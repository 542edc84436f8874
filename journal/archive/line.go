package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

const (
	formatName    = "millrace-archive"
	formatVersion = 1

	// maxPageEvents leaves room in a transaction for the head, and for one more item.
	maxPageEvents = storage.MaxActions - 2
	// maxPageBytes is the size at which a page ends. With one more event and a snapshot it is still
	// far below 4 MB.
	maxPageBytes = 1 << 20
	// maxLineBytes suffices for any item of 400 KB: base64 makes it a third longer, and JSON writes
	// a control character as six bytes.
	maxLineBytes = 4 << 20
)

// Kinds of lines.
const (
	kindArchive = "archive"
	kindHead    = "head"
	kindEvent   = "event"
	kindSum     = "sum"
	kindEnd     = "end"
	kindTotal   = "total"
	kindLeftOut = "left_out"
)

// line is any line of an archive. Its kind determines which fields it has.
type line struct {
	Kind string `json:"kind"`

	// archive
	Format   string     `json:"format,omitempty"`
	Created  *time.Time `json:"created,omitempty"`
	Table    string     `json:"table,omitempty"`
	Shards   int        `json:"shards,omitempty"`
	Resolver string     `json:"resolver,omitempty"`
	Layout   string     `json:"layout,omitempty"`
	Only     *only      `json:"only,omitempty"`

	// head; Version is also used for the version of the format
	Aggregate       *only     `json:"aggregate,omitempty"`
	Version         uint64    `json:"version,omitempty"`
	TruncatedBefore uint64    `json:"truncated_before,omitempty"`
	DeletedAt       *int64    `json:"deleted_at,omitempty"`
	Snapshot        *snapshot `json:"snapshot,omitempty"`

	// event
	Number     uint64             `json:"number,omitempty"`
	ID         string             `json:"id,omitempty"`
	Type       string             `json:"type,omitempty"`
	OccurredAt int64              `json:"occurred_at,omitempty"`
	Commit     string             `json:"commit,omitempty"`
	Metadata   aggregate.Metadata `json:"metadata,omitempty"`
	// keys and values that are not text
	Binary   [][2][]byte `json:"metadata_binary,omitempty"`
	Encoding string      `json:"encoding,omitempty"`
	Payload  []byte      `json:"payload,omitempty"`

	// left_out, which names the Aggregate if it is known
	Reason string `json:"reason,omitempty"`

	// sum, end, total
	Aggregates int64  `json:"aggregates,omitempty"`
	Events     int64  `json:"events,omitempty"`
	LeftOut    int64  `json:"left_out,omitempty"`
	Digest     string `json:"sha256,omitempty"`
}

type only struct {
	Type  string `json:"type"`
	Value string `json:"value,omitempty"`
}

type snapshot struct {
	Number   uint64 `json:"number,omitempty"`
	Schema   uint64 `json:"schema,omitempty"`
	Encoding string `json:"encoding,omitempty"`
	Payload  []byte `json:"payload"`
}

func headerLine(config *engine.Settings, s Selection) line {
	created := config.Now().UTC()
	l := line{
		Kind: kindArchive, Format: formatName, Version: formatVersion, Created: &created, Table: config.Tables.Journal,
		Shards: config.Shards, Resolver: config.Resolver.Name(), Layout: string(config.Layout),
	}
	if s != (Selection{}) {
		l.Only = &only{Type: s.aggregateType(), Value: s.Aggregate.Value}
	}
	return l
}

// selection returns the selection with which the archive was made.
func (l *line) selection() Selection {
	switch {
	case l.Only == nil:
		return Selection{}
	case l.Only.Value == "":
		return Selection{AggregateType: l.Only.Type}
	default:
		return Selection{Aggregate: aggregate.ID(*l.Only)}
	}
}

func headLine(h journal.Head) line {
	id := only(h.Aggregate)
	l := line{Kind: kindHead, Aggregate: &id, Version: h.Version, TruncatedBefore: h.TruncatedBefore}
	if !h.DeletedAt.IsZero() {
		millis := h.DeletedAt.UnixMilli()
		l.DeletedAt = &millis
	}
	if s := h.Snapshot; s != nil {
		l.Snapshot = &snapshot{Number: s.Number, Schema: s.Schema, Encoding: s.Encoding, Payload: s.Payload}
	}
	return l
}

// head reverses headLine. It returns an error if the line is not a valid head.
func (l *line) head() (journal.Head, error) {
	if l.Aggregate == nil {
		return journal.Head{}, fmt.Errorf("it names no aggregate")
	}
	h := journal.Head{Aggregate: aggregate.ID(*l.Aggregate), Version: l.Version, TruncatedBefore: l.TruncatedBefore}
	if err := h.Aggregate.Validate(); err != nil {
		return journal.Head{}, err
	}
	if l.DeletedAt != nil {
		h.DeletedAt = time.UnixMilli(*l.DeletedAt).UTC()
	}
	if s := l.Snapshot; s != nil {
		h.Snapshot = &journal.Snapshot{Number: s.Number, Schema: s.Schema, Encoding: s.Encoding, Payload: s.Payload}
	}
	last := h.Version + 1 // if the head has no events
	switch {
	case l.DeletedAt != nil && (*l.DeletedAt < 0 || h.DeletedAt.Year() > 9999):
		return journal.Head{}, fmt.Errorf("%d is not a valid time of a deletion, in milliseconds since 1970", *l.DeletedAt)
	case h.Version == 0 || last == 0:
		return journal.Head{}, fmt.Errorf("%d is not a valid version of a head", h.Version)
	case h.TruncatedBefore > last:
		return journal.Head{}, fmt.Errorf("it is truncated before %d, beyond its version %d", h.TruncatedBefore, h.Version)
	case !h.DeletedAt.IsZero() && (h.TruncatedBefore != last || h.Snapshot != nil):
		return journal.Head{}, fmt.Errorf("it is a tombstone, but has events or a snapshot")
	case h.Snapshot != nil && h.Snapshot.Number > h.Version:
		return journal.Head{}, fmt.Errorf("its snapshot is of event %d, beyond its version %d", h.Snapshot.Number, h.Version)
	case h.Snapshot != nil && h.Snapshot.Number > 0 && h.Snapshot.Number+1 < first(h):
		return journal.Head{}, fmt.Errorf("its snapshot is of event %d, and it is truncated before %d", h.Snapshot.Number, h.TruncatedBefore)
	}
	return h, nil
}

// eventLine converts a record to a line. Method record of line reverses it.
func eventLine(r *journal.Record) line {
	return line{
		Kind: kindEvent, Number: r.Number, ID: r.EventID, Type: r.EventType, OccurredAt: r.OccurredAt.UnixMilli(),
		Commit: r.CommitID, Metadata: metadata.Text(r.Metadata), Binary: metadata.Binary(r.Metadata),
		Encoding: r.Encoding, Payload: r.Payload,
	}
}

func (l *line) record(id aggregate.ID) *journal.Record {
	return &journal.Record{
		Aggregate: id, Number: l.Number, EventID: l.ID, EventType: l.Type, Payload: l.Payload,
		Metadata:   metadata.Join(l.Metadata, l.Binary),
		OccurredAt: time.UnixMilli(l.OccurredAt).UTC(), CommitID: l.Commit, Encoding: l.Encoding,
	}
}

// first returns the number of the first event of an aggregate in an archive.
func first(h journal.Head) uint64 { return max(h.TruncatedBefore, 1) }

// lines encodes the lines of one aggregate, and computes their digest.
type lines struct {
	text bytes.Buffer
	json *json.Encoder
	sum  hash.Hash
}

func newLines() *lines {
	ls := &lines{sum: sha256.New()}
	ls.json = json.NewEncoder(&ls.text)
	ls.json.SetEscapeHTML(false)
	return ls
}

func (ls *lines) put(l line) error {
	start := ls.text.Len()
	if err := ls.json.Encode(l); err != nil {
		return fmt.Errorf("encode line: %w", err)
	}
	ls.sum.Write(ls.text.Bytes()[start:])
	return nil
}

// close ends a page with a line that has the digest of all lines of the aggregate so far.
func (ls *lines) close(kind string, events int64) ([]byte, error) {
	if err := ls.put(line{Kind: kind, Events: events, Digest: digest(ls.sum)}); err != nil {
		return nil, err
	}
	text := bytes.Clone(ls.text.Bytes())
	ls.text.Reset()
	return text, nil
}

func digest(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) }
