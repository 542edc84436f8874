package classic

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/layouttest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// accepting is a client that accepts every transaction.
type accepting struct{ journaltype.Client }

func (accepting) TransactWriteItems(
	context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func journalForSizes(attributes journaltype.Attributes) *engine.Engine {
	return layouttest.Engine(accepting{}, Kind, func(s *engine.Settings) {
		s.Shards = table.MaxShards
		for _, set := range []struct {
			name  *string
			given string
		}{
			{&s.Attributes.PartitionKey, attributes.PartitionKey},
			{&s.Attributes.SortKey, attributes.SortKey},
			{&s.Attributes.AggregateID, attributes.AggregateID},
			{&s.Attributes.SequenceNumber, attributes.SequenceNumber},
			{&s.Attributes.Payload, attributes.Payload},
		} {
			*set.name = cmp.Or(set.given, *set.name)
		}
	})
}

func TestEventSizeIsNeverLessThanTheItemAndCloseToIt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	text := func(most int) string { return strings.Repeat("ü", random.IntN(most+1)) }
	journals := []*engine.Engine{
		journalForSizes(journaltype.Attributes{}),
		journalForSizes(journaltype.Attributes{Payload: strings.Repeat("p", 200), SequenceNumber: "ser_nr"}),
	}
	for range 2_000 {
		j := journals[random.IntN(len(journals))]
		id := aggregate.ID{Type: "t" + text(20), Value: "v" + text(40)}
		e := storage.Event{ID: text(20), Type: text(20), Payload: make([]byte, random.IntN(2_000))}
		for range random.IntN(4) {
			if e.Metadata == nil {
				e.Metadata = aggregate.Metadata{}
			}
			e.Metadata["k"+text(10)] = text(30)
			if random.IntN(4) == 0 {
				e.Metadata["\xff"+text(10)] = text(30)
			}
		}
		number := uint64(1)
		if random.IntN(2) == 0 {
			number = math.MaxUint64
		}
		item := table.ItemSize(layoutOf(j).itemOf(&journaltype.Record{
			Aggregate: id, Number: number, EventID: e.ID, EventType: e.Type, Payload: e.Payload, Metadata: e.Metadata,
			OccurredAt: time.UnixMilli(1_700_000_000_000), CommitID: strings.Repeat("c", 36),
		}))

		size, err := j.EventSize(id, e)
		require.NoError(t, err)
		require.GreaterOrEqual(t, size, item, "an event must not turn out larger than announced")
		require.LessOrEqual(t, size, item+64, "nor be refused for much that it does not have")
	}
}

func TestEventSizeRefusesWhatAppendWouldRefuse(t *testing.T) {
	t.Parallel()
	j := journalForSizes(journaltype.Attributes{})
	id := aggregate.ID{Type: "order", Value: "1"}

	for name, c := range map[string]struct {
		id    aggregate.ID
		event storage.Event
		want  any
	}{
		"no aggregate id":       {aggregate.ID{Type: "order"}, storage.Event{}, new(*aggregate.InvalidIDError)},
		"over 400 KB":           {id, storage.Event{Payload: make([]byte, storage.MaxItemBytes)}, new(*journaltype.TooLargeError)},
		"type that is not text": {id, storage.Event{Type: "\xff"}, journaltype.ErrInvalidCommit},
	} {
		_, err := j.EventSize(c.id, c.event)
		if sentinel, ok := c.want.(error); ok {
			assert.ErrorIs(t, err, sentinel, name)
		} else {
			assert.ErrorAs(t, err, c.want, name)
		}
	}
}

func TestEventsUpToTheAnnouncedSizeFitIntoOneCommit(t *testing.T) {
	t.Parallel()
	longest := aggregate.ID{Type: "t", Value: strings.Repeat("v", aggregate.MaxIDBytes-2)}
	for _, j := range []*engine.Engine{
		journalForSizes(journaltype.Attributes{}),
		journalForSizes(journaltype.Attributes{PartitionKey: strings.Repeat("p", 255), SortKey: strings.Repeat("s", 255), AggregateID: strings.Repeat("a", 255)}),
	} {
		empty, err := j.EventSize(longest, storage.Event{})
		require.NoError(t, err)
		const n = 20
		c := storage.Commit{Aggregate: longest, Expected: math.MaxUint64 - n}
		for range n {
			c.Events = append(c.Events, storage.Event{Payload: make([]byte, storage.MaxEventsBytes/n-empty)})
		}

		_, err = j.Append(t.Context(), c)
		assert.NoError(t, err)
	}
}
