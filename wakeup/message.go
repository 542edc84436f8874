package wakeup

import (
	"encoding/json"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// wakeup is the payload of a message.
type wakeup struct {
	Journal string `json:"journal"` // name of the journal table
	// Versions contains the versions of aggregates, by type and id.
	Versions map[string]map[string]uint64 `json:"versions"`
}

const (
	// A message has at most maxAggregates aggregates, and maxBytes bytes of ids. JSON can take six
	// bytes for one, and brokers accept at least 256 KB.
	maxAggregates = 500
	maxBytes      = 32 << 10
	// maxReceived is the size beyond which a message is ignored. It is larger than maxBytes because
	// of what JSON adds.
	maxReceived = 8 * maxBytes
)

// take moves aggregates from pending to a payload, as many as a message may have.
// It returns their number.
func (w *wakeup) take(pending map[aggregate.ID]uint64) (count int) {
	w.Versions = map[string]map[string]uint64{}
	size := 0
	for id, version := range pending {
		if size += len(id.Type) + len(id.Value); count > 0 && (count == maxAggregates || size > maxBytes) {
			return count
		}
		if w.Versions[id.Type] == nil {
			w.Versions[id.Type] = map[string]uint64{}
		}
		w.Versions[id.Type][id.Value] = version
		delete(pending, id)
		count++
	}
	return count
}

// parse returns the content of a message.
func parse(payload []byte) (w wakeup, err error) {
	if len(payload) > maxReceived {
		return w, fmt.Errorf("a wake-up has %d bytes, more than %d", len(payload), maxReceived)
	}
	if err := json.Unmarshal(payload, &w); err != nil {
		return w, fmt.Errorf("decode a wake-up: %w", err)
	}
	return w, nil
}
