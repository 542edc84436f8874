package command

import (
	"context"
	"errors"
	"maps"
	"strconv"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/journal"
)

// aggregateName is an aggregate's id as JSON, in the format of archives.
type aggregateName struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

func nameOf(id aggregate.ID) aggregateName { return aggregateName(id) }

// eventLine is an event as JSON.
type eventLine struct {
	Kind       string            `json:"kind"` // "event"
	Aggregate  aggregateName     `json:"aggregate"`
	Number     uint64            `json:"number"`
	OccurredAt string            `json:"occurred_at"` // RFC 3339, UTC, milliseconds
	Type       string            `json:"type"`        // empty for events of foreign writers
	ID         string            `json:"id"`
	Bytes      int               `json:"bytes"` // size of the stored payload
	Metadata   map[string]string `json:"metadata,omitempty"`
	Binary     [][2][]byte       `json:"metadata_binary,omitempty"`
	Commit     string            `json:"commit,omitempty"`
	Encoding   string            `json:"encoding,omitempty"` // encoding of the stored payload
	output.Payload
	// Undecoded reports that the payload is the stored payload, since this command cannot decode
	// it.
	Undecoded bool `json:"undecoded,omitempty"`
}

// newEventLine returns the line of a stored record. If payload is true, it includes the payload. It
// decodes the payload if it can; an encrypted payload stays encrypted.
func newEventLine(ctx context.Context, j *journal.Journal, r *journal.Record, payload bool) (eventLine, error) {
	l := eventLine{
		Kind: "event", Aggregate: nameOf(r.Aggregate), Number: r.Number, OccurredAt: output.Time(r.OccurredAt), Type: r.EventType,
		ID: r.EventID, Bytes: len(r.Payload), Metadata: metadata.Text(r.Metadata), Binary: metadata.Binary(r.Metadata), Commit: r.CommitID, Encoding: r.Encoding,
	}
	if !payload {
		return l, nil
	}
	plain, err := j.Decode(ctx, r)
	switch {
	case errors.As(err, new(*journal.EncodingError)):
		plain, l.Undecoded = r, true
	case err != nil:
		return l, err
	}
	l.Payload = output.PayloadOf(plain.Payload)
	return l, nil
}

var (
	aggregateColumn = output.Column[eventLine]{Name: "AGGREGATE", Cell: func(e eventLine) string { return e.Aggregate.Value }}
	numberColumn    = output.Column[eventLine]{Name: "NUMBER", Cell: func(e eventLine) string { return strconv.FormatUint(e.Number, 10) }}
	timeColumn      = output.Column[eventLine]{Name: "TIME", Cell: func(e eventLine) string { return e.OccurredAt }}
	typeColumn      = output.Column[eventLine]{Name: "TYPE", Cell: func(e eventLine) string { return e.Type }}
	sizeColumn      = output.Column[eventLine]{Name: "SIZE", Cell: func(e eventLine) string { return output.Bytes(e.Bytes) }}
	idColumn        = output.Column[eventLine]{Name: "ID", Cell: func(e eventLine) string { return e.ID }}
	metadataColumn  = output.Column[eventLine]{Name: "METADATA", Cell: func(e eventLine) string { return output.Metadata(metadata.Join(maps.Clone(e.Metadata), e.Binary)) }}
	payloadColumn   = output.Column[eventLine]{Name: "PAYLOAD", Cell: func(e eventLine) string {
		if e.Undecoded {
			return "(" + e.Encoding + ", " + output.Bytes(e.Bytes) + ")"
		}
		return e.Payload.String()
	}}
)
