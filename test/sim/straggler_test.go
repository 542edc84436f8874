package sim

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/test/draw"
)

// arrivals is a database that counts requests.
type arrivals int

func (a *arrivals) RoundTrip(*http.Request) (*http.Response, error) {
	*a++
	return &http.Response{StatusCode: http.StatusBadRequest, Body: io.NopCloser(strings.NewReader(""))}, nil
}

func TestARemovalIsHeldBackUntilItsOwnerListsTheAggregateAgain(t *testing.T) {
	t.Parallel()
	row := func(id string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"pkey": &types.AttributeValueMemberS{Value: "g/order-3"}, "skey": &types.AttributeValueMemberS{Value: behindPrefix + id},
		}
	}
	epoch := func(n uint64) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{valueEpoch: numberValue(n)}
	}
	table := aws.String(checkpointTable)
	removal := func(id string) any {
		return &dynamodb.DeleteItemInput{TableName: table, Key: row(id), ExpressionAttributeValues: epoch(7)}
	}
	listed := func(epochs uint64) any {
		return &dynamodb.UpdateItemInput{TableName: table, Key: row("a"), ExpressionAttributeValues: epoch(epochs)}
	}
	database := new(arrivals)
	var struck, again []stream
	w := &wire{oracle: newOracle(newTrace(io.Discard)), member: &member{name: "m"}, next: database}
	w.stragglers = &stragglers{
		random: draw.New(1, 1), chance: 1, most: time.Hour, held: map[string]*straggler{},
		begun: func(s stream) { struck = append(struck, s) }, arrived: func(s stream) { again = append(again, s) },
	}
	request, err := http.NewRequestWithContext(context.WithValue(t.Context(), exchangeKey{}, &exchange{}), http.MethodPost, "/", http.NoBody)
	require.NoError(t, err)
	a, b := stream{"g", "order", "a"}, stream{"g", "order", "b"}

	require.True(t, w.holdBack(removal("a"), request))
	assert.False(t, w.holdBack(removal("a"), request), "it is sent again")
	require.True(t, w.holdBack(removal("b"), request))
	assert.Equal(t, []stream{a, b}, struck)
	w.noteListed(listed(8))
	assert.Zero(t, *database, "that is another owner")
	w.noteListed(listed(7))
	assert.EqualValues(t, 1, *database)
	assert.Equal(t, []stream{a}, again)
	w.stragglers.end()
	assert.EqualValues(t, 2, *database)
	assert.False(t, w.holdBack(removal("a"), request), "all is calm")
}
