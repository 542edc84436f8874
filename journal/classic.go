package journal

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
)

// classic implements the layout [Classic].
type classic struct {
	*store
}

func newClassic(s *store) layout { return &classic{s} }

func (l *classic) traits() traits {
	return traits{groupBytes: storage.MaxEventsBytes, eventsApart: true, stateAtFirst: true}
}

func (l *classic) attributeNames() []string {
	a := l.config.Attributes
	return []string{a.PartitionKey, a.SortKey, a.AggregateID, a.SequenceNumber, a.Payload, a.OccurredAt, a.Version, a.TTL}
}

// classicNames are the attributes that this module adds to those of the family.
var classicNames = []reserved{
	{"the event id", attrEventID},
	{"the event type", attrEventType},
	{"the metadata", metadata.Attribute},
	{"the metadata that is not text", metadata.BinaryAttribute},
	{"the commit id", attrCommitID},
	{"the encoding", attrEncoding},
	{"the snapshot's number", attrSnapshotNumber},
	{"the snapshot's digest", attrSnapshotDigest},
	{"the snapshot's schema", attrSnapshotSchema},
	{"the list of redundant snapshots", attrRedundant},
	{"the place of truncation", attrTruncatedBefore},
	{"the time of deletion", attrDeletedAt},
	{"the command id", attrCommandID},
	{"a command's first event", attrCommitFirst},
	{"a command's version", attrCommitVersion},
}

func (l *classic) tables() []*dynamodb.CreateTableInput {
	a, x, t := l.config.Attributes, l.config.Indexes, l.config.Tables
	keys := []types.AttributeDefinition{textKey(a.PartitionKey), textKey(a.SortKey)}
	byAggregate := []types.AttributeDefinition{textKey(a.AggregateID), numberKey(a.SequenceNumber)}
	byTime := []types.AttributeDefinition{numberKey(a.OccurredAt)}
	return []*dynamodb.CreateTableInput{
		l.table(t.Journal, slices.Concat(byTime, keys, byAggregate),
			l.index(x.JournalAggregate, a.AggregateID, a.SequenceNumber),
			l.index(x.JournalTail, a.PartitionKey, a.OccurredAt)),
		l.table(t.Snapshot, slices.Concat(keys, byAggregate),
			l.index(x.SnapshotAggregate, a.AggregateID, a.SequenceNumber)),
	}
}

func (l *classic) descriptorKey() item {
	return item{
		l.config.Attributes.PartitionKey: stringValue(descriptorPartition),
		l.config.Attributes.SortKey:      stringValue(descriptorSort),
	}
}

func (l *classic) grow(context.Context, int) (time.Time, error) {
	return time.Time{}, &ConfigError{Field: "Layout", Reason: "is Classic, whose keys contain the number of shards: it cannot change"}
}

func (l *classic) opened(descriptor, time.Time) {}

func (l *classic) tailFactor(context.Context) (int, error) { return 1, nil }
