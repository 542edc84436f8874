package journaltype

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// Encoding encodes payloads of events and snapshots before they are stored, and decodes them.
// Packages compress and encrypt contain implementations. An Encoding must be safe for concurrent
// use. It must neither change nor keep its arguments. The caller owns the results.
type Encoding interface {
	// Name returns the name that is stored beside each payload to which the encoding was applied.
	// It has 1 to 32 lower case letters, digits and ._- characters. It must never change, and no
	// other encoding may use it.
	Name() string

	// Encode returns the encoded payload. It may return applied false, for example if the payload
	// would not become smaller. It runs once for each payload of a commit, before anything is sent.
	// If it returns an error, nothing is written.
	Encode(ctx context.Context, at Place, payload []byte) (encoded []byte, applied bool, err error)

	// Decode reverses Encode. It receives the same place.
	Decode(ctx context.Context, at Place, encoded []byte) ([]byte, error)

	// Overhead returns the largest number of bytes that Encode adds to a payload.
	Overhead() int
}

// Place identifies the event or snapshot that a payload belongs to.
type Place struct {
	Aggregate aggregate.ID // the aggregate of the payload
	Number    uint64       // of the event, or of the last event in the state
	// EventType is the stored type. It is empty for snapshots and for events without a stored type.
	EventType string
	Snapshot  bool // whether the payload is a snapshot
}

// String returns the place as text for logs and errors.
func (p Place) String() string {
	if p.Snapshot {
		return fmt.Sprintf("snapshot of %s at event %d", p.Aggregate, p.Number)
	}
	return fmt.Sprintf("event %d of %s", p.Number, p.Aggregate)
}
