package journal

import (
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// MaxEventsBytes is what the events of one commit may take together, as [Journal.EventSize] counts
// them. What it leaves of [MaxCommitBytes] is enough for the head of any aggregate.
const MaxEventsBytes = MaxCommitBytes - 8<<10

// EventSize returns how many bytes an event takes at most, of [MaxItemBytes] and of [MaxEventsBytes],
// wherever in the aggregate it will stand. For an event that [Journal.Append] would refuse it returns the
// error, so that a writer who fills transactions knows beforehand. It does not encode: the payload counts in plain, with
// the most that [Config.Encodings] may add; so it also refuses an event over 400 KB that Append would take because it
// can be compressed.
//
// Errors: [ErrTooLarge], [ErrInvalidEvent], aggregate.ErrInvalidID.
func (j *Journal) EventSize(id aggregate.ID, e Event) (int, error) {
	if err := id.Validate(); err != nil {
		return 0, err
	}
	if err := validateEvent(e); err != nil {
		return 0, fmt.Errorf("append to %s: %w", id, err)
	}
	size := j.eventSize(id, e)
	if size > MaxItemBytes {
		return 0, &TooLargeError{ID: id, What: fmt.Sprintf("event %q", e.Type), Size: size, Limit: MaxItemBytes}
	}
	return size, nil
}

// eventSize is what itemSize gives for the event's item with the longest shard, number and commit id,
// without building the item.
func (j *Journal) eventSize(id aggregate.ID, e Event) int {
	const (
		shard    = len("-65535") // of MaxShards
		number   = len("-18446744073709551615")
		numeric  = 21 // DynamoDB's most for a number
		commitID = 36 // DynamoDB's most for a ClientRequestToken
	)
	a := j.config.Attributes
	size := len(a.PartitionKey) + len(a.SortKey) + len(a.AggregateID) + len(a.SequenceNumber) + len(a.Payload) + len(a.OccurredAt) +
		len(attrCommitID) + commitID +
		len(id.Type) + shard +
		2*(len(id.Type)+len("-")+len(id.Value)) + number +
		numeric + numeric +
		len(e.Payload)
	if e.Encoding != "" {
		size += len(attrEncoding) + len(e.Encoding)
	} else if !j.raw {
		size += j.encodingOverhead()
	}
	if e.ID != "" {
		size += len(attrEventID) + len(e.ID)
	}
	if e.Type != "" {
		size += len(attrEventType) + len(e.Type)
	}
	if len(e.Metadata) > 0 {
		size += len(attrMetadata) + 3
		for k, v := range e.Metadata {
			size += 1 + len(k) + len(v)
		}
	}
	return size
}
