package wakeup

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
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

// Errors of [Read].
var (
	// ErrNoWakeup reports that a message is not a wake-up, or is too large for one.
	ErrNoWakeup = errors.New("the message is no wake-up")
	// ErrOtherJournal reports that a wake-up is about another journal.
	ErrOtherJournal = errors.New("the wake-up is about another journal")
)

// Read returns the aggregates that a message reports, each with its version. It leaves out invalid
// ids. It is for programs that receive wake-ups without a [Receiver], such as functions in AWS
// Lambda. Errors: [ErrNoWakeup], [ErrOtherJournal].
func Read(j *journal.Journal, payload []byte) (map[aggregate.ID]uint64, error) {
	versions, _, err := read(j, payload)
	return versions, err
}

// read is [Read]. It also counts the invalid ids.
func read(j *journal.Journal, payload []byte) (versions map[aggregate.ID]uint64, invalid int, err error) {
	if len(payload) > maxReceived {
		return nil, 0, fmt.Errorf("%w: it has %d bytes, more than %d", ErrNoWakeup, len(payload), maxReceived)
	}
	var w wakeup
	if err := json.Unmarshal(payload, &w); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrNoWakeup, err)
	}
	switch own := j.Config().Tables.Journal; {
	case w.Journal == "" || w.Versions == nil:
		return nil, 0, fmt.Errorf("%w: it lacks a journal or versions", ErrNoWakeup)
	case w.Journal != own:
		return nil, 0, fmt.Errorf("%w: %s instead of %s", ErrOtherJournal, printable.Quote(w.Journal), own)
	}
	versions = map[aggregate.ID]uint64{}
	for aggregateType, of := range w.Versions {
		for value, version := range of {
			if id, err := aggregate.NewID(aggregateType, value); err == nil {
				versions[id] = version
			} else {
				invalid++
			}
		}
	}
	return versions, invalid, nil
}
