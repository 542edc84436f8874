package projection_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
