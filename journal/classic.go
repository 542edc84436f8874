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

// ClassicStorage implements the layout [Classic].
type ClassicStorage struct {
	*Store
}

func NewClassic(s *Store) Storage { return &ClassicStorage{s} }

func (l *ClassicStorage) Traits() Traits {
	return Traits{GroupBytes: storage.MaxEventsBytes, EventsApart: true, StateAtFirst: true}
}

func (l *ClassicStorage) AttributeNames() []string {
	a := l.Config.Attributes
	return []string{a.PartitionKey, a.SortKey, a.AggregateID, a.SequenceNumber, a.Payload, a.OccurredAt, a.Version, a.TTL}
}

// ClassicNames are the attributes that this module adds to those of the family.
var ClassicNames = []Reserved{
	{"the event id", attrEventID},
	{"the event type", attrEventType},
	{"the metadata", metadata.Attribute},
	{"the metadata that is not text", metadata.BinaryAttribute},
	{"the commit id", AttrCommitID},
	{"the encoding", AttrEncoding},
	{"the snapshot's number", attrSnapshotNumber},
	{"the snapshot's digest", attrSnapshotDigest},
	{"the snapshot's schema", attrSnapshotSchema},
	{"the list of redundant snapshots", attrRedundant},
	{"the place of truncation", attrTruncatedBefore},
	{"the time of deletion", attrDeletedAt},
	{"the command id", AttrCommandID},
	{"a command's first event", AttrCommitFirst},
	{"a command's version", AttrCommitVersion},
}

func (l *ClassicStorage) Tables() []*dynamodb.CreateTableInput {
	a, x, t := l.Config.Attributes, l.Config.Indexes, l.Config.Tables
	keys := []types.AttributeDefinition{TextKey(a.PartitionKey), TextKey(a.SortKey)}
	byAggregate := []types.AttributeDefinition{TextKey(a.AggregateID), NumberKey(a.SequenceNumber)}
	byTime := []types.AttributeDefinition{NumberKey(a.OccurredAt)}
	return []*dynamodb.CreateTableInput{
		l.TableInput(t.Journal, slices.Concat(byTime, keys, byAggregate),
			l.Index(x.JournalAggregate, a.AggregateID, a.SequenceNumber),
			l.Index(x.JournalTail, a.PartitionKey, a.OccurredAt)),
		l.TableInput(t.Snapshot, slices.Concat(keys, byAggregate),
			l.Index(x.SnapshotAggregate, a.AggregateID, a.SequenceNumber)),
	}
}

func (l *ClassicStorage) DescriptorKey() Item {
	return Item{
		l.Config.Attributes.PartitionKey: StringValue(DescriptorPartition),
		l.Config.Attributes.SortKey:      StringValue(DescriptorSort),
	}
}

func (l *ClassicStorage) Grow(context.Context, int) (time.Time, error) {
	return time.Time{}, &ConfigError{Field: "Layout", Reason: "is Classic, whose keys contain the number of shards: it cannot change"}
}

func (l *ClassicStorage) Opened(Descriptor, time.Time) {}

func (l *ClassicStorage) TailFactor(context.Context) (int, error) { return 1, nil }
