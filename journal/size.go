package journal

import (
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
)

func (j *engine) EventSize(id aggregate.ID, e storage.Event) (int, error) {
	if err := id.Validate(); err != nil {
		return 0, err
	}
	if err := validateEvent(e); err != nil {
		return 0, fmt.Errorf("append to %s: %w", id, err)
	}
	size := j.eventSize(id, e)
	if size > storage.MaxItemBytes {
		return 0, &TooLargeError{ID: id, What: fmt.Sprintf("event %q", e.Type), Size: size, Limit: storage.MaxItemBytes, Unit: unitBytes}
	}
	return size, nil
}

// eventSize is what itemSize returns for the event's item with the longest shard, number and commit
// id, without building the item.
func (j *engine) eventSize(id aggregate.ID, e storage.Event) int {
	const (
		shard    = len("-65535") // of maxShards
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
	return size + metadata.Size(e.Metadata)
}
