package packed

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// packedEvent is an event in the item of a commit: an array in CBOR (RFC 8949).
type packedEvent struct {
	_       struct{} `cbor:",toarray"`
	Type    string
	Payload []byte
	// keys and values in turn, sorted by key; binary, so that they may hold text that is not UTF-8
	Metadata [][]byte
	ID       any    // 16 bytes for a UUID, text for another id, nil for a derived id
	Millis   *int64 // when it occurred, if it differs from the time of writing
	Encoding string
}

// decoding allows as many elements as an item can have. The default limit of the library is lower.
var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{MaxArrayElements: storage.MaxItemBytes}.DecMode()
	if err != nil {
		panic(err) // the options are constant
	}
	return mode
}()

func packEvent(e *storage.Event, millis *int64) ([]byte, error) {
	packed := packedEvent{Type: e.Type, Payload: e.Payload, Metadata: packMetadata(e.Metadata), Millis: millis, Encoding: e.Encoding}
	if packed.Payload == nil {
		packed.Payload = []byte{}
	}
	if e.ID != "" {
		packed.ID = packID(e.ID)
	}
	return cbor.Marshal(&packed)
}

// packID returns a UUID in its usual form as 16 bytes, and any other id as text.
func packID(id string) any {
	if parsed, err := uuid.Parse(id); err == nil && parsed.String() == id {
		return parsed[:]
	}
	return id
}

func packMetadata(m aggregate.Metadata) [][]byte {
	if len(m) == 0 {
		return nil
	}
	flat := make([][]byte, 0, 2*len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		flat = append(flat, []byte(key), []byte(m[key]))
	}
	return flat
}

// joinEvents returns the value that an item stores for its events.
func joinEvents(packed [][]byte) ([]byte, error) {
	raw := make([]cbor.RawMessage, len(packed))
	for i, event := range packed {
		raw[i] = event
	}
	return cbor.Marshal(raw)
}

// recordsOf decodes the events of an item. It returns nil for a tombstone, and for an item whose
// events were removed.
func (p *layout) recordsOf(it *item) ([]*journaltype.Record, error) {
	if it.count == 0 || it.lacksEvents() {
		return nil, nil
	}
	plain := it.events
	if isCompressed(plain) {
		var err error
		if plain, err = decompress(plain, max(1, it.size)<<10); err != nil {
			return nil, it.corrupt(fmt.Sprintf("has events that cannot be decompressed: %v", err))
		}
	}
	var events []packedEvent
	if err := decoding.Unmarshal(plain, &events); err != nil {
		return nil, it.corrupt(fmt.Sprintf("has events that cannot be read: %v", err))
	}
	if uint64(len(events)) != it.count {
		err := it.corrupt(fmt.Sprintf("has %d events, but its count is %d", len(events), it.count))
		return nil, &miscounted{err, it.first + uint64(len(events))}
	}
	records := make([]*journaltype.Record, len(events))
	space := make([]journaltype.Record, len(events))
	written := time.UnixMilli(it.millis).UTC()
	for i := range events {
		e, r := &events[i], &space[i]
		*r = journaltype.Record{
			Aggregate: it.id, Number: it.first + uint64(i), EventType: e.Type, Payload: e.Payload, Encoding: e.Encoding,
			CommitID: it.commitID, OccurredAt: written, WrittenAt: written,
		}
		if e.Millis != nil {
			r.OccurredAt = time.UnixMilli(*e.Millis).UTC()
		}
		switch id := e.ID.(type) {
		case string:
			r.EventID = id
		case []byte:
			parsed, err := uuid.FromBytes(id)
			if err != nil {
				return nil, it.corrupt("has an event whose id is not a UUID")
			}
			r.EventID = parsed.String()
		default:
			r.EventID = eventIDIn(it.commit, r.Number)
		}
		if len(e.Metadata)%2 != 0 {
			return nil, it.corrupt("has an event whose metadata is not a list of pairs")
		}
		if len(e.Metadata) > 0 {
			r.Metadata = make(aggregate.Metadata, len(e.Metadata)/2)
			for k := 0; k < len(e.Metadata); k += 2 {
				r.Metadata[string(e.Metadata[k])] = string(e.Metadata[k+1])
			}
		}
		records[i] = r
	}
	return records, nil
}

// miscounted is the error of an item that counts more events than it has. beyond is the number of
// the first one that it lacks.
type miscounted struct {
	item   *journaltype.CorruptItemError
	beyond uint64
}

func (e *miscounted) Error() string { return e.item.Error() }

func (e *miscounted) Unwrap() error { return e.item }

// corruptAt returns an error of recordsOf for a reader of an event. The event is missing if its
// item only counts it.
func corruptAt(err error, number uint64) error {
	var lacks *miscounted
	if errors.As(err, &lacks) && number >= lacks.beyond {
		lacks.item.Number, lacks.item.Missing = number, true
	}
	return err
}

// eventIDIn derives the id of an event that was stored without one.
func eventIDIn(commit string, number uint64) string {
	return uuid.NewSHA1(engine.EventIDs, []byte(commit+"\x00"+strconv.FormatUint(number, 10))).String()
}
