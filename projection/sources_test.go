package projection_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestAnItemGrowsWithItsSourcesAndNotWithTheirEvents(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const sources, each = 5, 20
	for s := range sources {
		w.write(fmt.Sprint("s", s), 0, deposits(each)...)
	}
	p := newProjection(t, w.client, projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
		return []projection.Write{projection.IdempotentUpdate(add("shared", e.Amount), r)}, nil
	}))
	sub := w.consume(subscriber.Config{}, p.Handle)
	eventually(t, "all count", func() bool { return w.total("shared") == sources*each*(each+1)/2 })
	require.NoError(t, sub.Close())

	out, err := w.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: key("shared")})
	require.NoError(t, err)
	last := item{}
	for name, value := range out.Item {
		if strings.HasPrefix(name, "last_event/") {
			last[name] = value
		}
	}
	want := item{}
	for s := range sources {
		want[projection.SourceAttribute(account(fmt.Sprint("s", s)))] = number(each)
	}
	assert.Equal(t, want, last)
}

func TestSourcesWhoseIDsReadTheSameCountApart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	sources := map[string]aggregate.ID{"x": {Type: "order", Value: "line-1"}, "y": {Type: "order-line", Value: "1"}}
	w.write("x", 0, Deposited{1}, Deposited{2})
	p := newProjection(t, w.client, projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
		source := *r
		source.Aggregate = sources[r.Aggregate.Value]
		return []projection.Write{projection.IdempotentUpdate(add("shared", e.Amount), &source)}, nil
	}))
	w.consume(subscriber.Config{}, p.Handle)
	eventually(t, "the first counts", func() bool { return w.total("shared") == 3 })
	w.write("y", 0, Deposited{100})
	eventually(t, "all are handled", func() bool { return p.Stats().Applied == 3 })
	assert.Equal(t, 103, w.total("shared"))
}

func TestAnItemThatWouldBeTooLargeIsTold(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, Deposited{1})
	pad := func(size int) types.AttributeValue {
		return &types.AttributeValueMemberS{Value: strings.Repeat("x", size)}
	}
	_, err := w.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: item{"id": key("full")["id"], "pad": pad(400<<10 - 30)}})
	require.NoError(t, err)
	for name, write := range map[string]func(r *journal.Record) projection.Write{
		"update": func(r *journal.Record) projection.Write { return projection.IdempotentUpdate(add("full", 1), r) },
		"put": func(*journal.Record) projection.Write {
			return projection.Put(types.Put{TableName: aws.String(table), Item: item{"id": key("other")["id"], "pad": pad(400 << 10)}})
		},
	} {
		p := newProjection(t, w.client, projection.On(func(_ context.Context, _ Deposited, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{write(r)}, nil
		}))
		err := w.handleNext(p.Handle)
		var large *projection.ItemTooLargeError
		require.ErrorAs(t, err, &large, name)
		assert.EqualValues(t, 1, large.Number)
	}
}

func TestATableThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, Deposited{1})
	p := newProjection(t, w.client, projection.On(func(context.Context, Deposited, *journal.Record) ([]projection.Write, error) {
		u := add("x", 1)
		u.TableName = aws.String("nowhere")
		return []projection.Write{projection.Update(u)}, nil
	}))
	err := w.handleNext(p.Handle)
	require.ErrorIs(t, err, journal.ErrTableMissing)
	assert.ErrorContains(t, err, "nowhere")
}
