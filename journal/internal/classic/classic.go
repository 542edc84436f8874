package classic

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// layout implements engine.Layout.
type layout struct {
	*table.Table
}

// Kind is the layout journal.Classic.
var Kind = engine.Kind{
	Name:     journaltype.Classic,
	New:      func(t *table.Table) engine.Layout { return &layout{t} },
	Traits:   engine.Traits{GroupBytes: storage.MaxEventsBytes, EventsApart: true, StateAtFirst: true},
	Reserved: names,
}

func (l *layout) AttributeNames() []string {
	a := l.Config.Attributes
	return []string{a.PartitionKey, a.SortKey, a.AggregateID, a.SequenceNumber, a.Payload, a.OccurredAt, a.Version, a.TTL}
}

// names are the attributes that this module adds to those of the family.
var names = []engine.Reserved{
	{What: "the event id", Name: attrEventID},
	{What: "the event type", Name: attrEventType},
	{What: "the metadata", Name: metadata.Attribute},
	{What: "the metadata that is not text", Name: metadata.BinaryAttribute},
	{What: "the commit id", Name: engine.AttrCommitID},
	{What: "the encoding", Name: engine.AttrEncoding},
	{What: "the snapshot's number", Name: attrSnapshotNumber},
	{What: "the snapshot's digest", Name: attrSnapshotDigest},
	{What: "the snapshot's schema", Name: attrSnapshotSchema},
	{What: "the list of redundant snapshots", Name: attrRedundant},
	{What: "the place of truncation", Name: attrTruncatedBefore},
	{What: "the time of deletion", Name: attrDeletedAt},
	{What: "the command id", Name: engine.AttrCommandID},
	{What: "a command's first event", Name: engine.AttrCommitFirst},
	{What: "a command's version", Name: engine.AttrCommitVersion},
}

func (l *layout) Tables() []*dynamodb.CreateTableInput {
	a, x, t := l.Config.Attributes, l.Config.Indexes, l.Config.Tables
	keys := []types.AttributeDefinition{table.TextKey(a.PartitionKey), table.TextKey(a.SortKey)}
	byAggregate := []types.AttributeDefinition{table.TextKey(a.AggregateID), table.NumberKey(a.SequenceNumber)}
	byTime := []types.AttributeDefinition{table.NumberKey(a.OccurredAt)}
	return []*dynamodb.CreateTableInput{
		l.TableInput(t.Journal, slices.Concat(byTime, keys, byAggregate),
			l.Index(x.JournalAggregate, a.AggregateID, a.SequenceNumber),
			l.Index(x.JournalTail, a.PartitionKey, a.OccurredAt)),
		l.TableInput(t.Snapshot, slices.Concat(keys, byAggregate),
			l.Index(x.SnapshotAggregate, a.AggregateID, a.SequenceNumber)),
	}
}

func (l *layout) DescriptorKey() table.Item {
	return table.Item{
		l.Config.Attributes.PartitionKey: table.StringValue(engine.DescriptorPartition),
		l.Config.Attributes.SortKey:      table.StringValue(engine.DescriptorSort),
	}
}

func (l *layout) Grow(context.Context, int) (time.Time, error) {
	return time.Time{}, &journaltype.ConfigError{Field: "Layout", Reason: "is Classic, whose keys contain the number of shards: it cannot change"}
}

func (l *layout) Opened(engine.Descriptor, time.Time) {}

func (l *layout) AwaitReads(context.Context) {} // there are no reads in the background

func (l *layout) TailFactor(context.Context) (int, error) { return 1, nil }
