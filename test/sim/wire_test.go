package sim

import (
	"io"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/test/draw"
)

// A proxy describes a table with the context of the request whose key it needs.
func TestWhatAProxyAsksOfItsOwnMovesNoPosition(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	oracle := newOracle(newTrace(io.Discard))
	w := &wire{oracle: oracle, member: &member{name: "operator"}, random: draw.New(1, 2), dead: make(chan struct{})}
	client := w.client(db.Client())
	w.proxy.Inject(dynamotest.Throttle(), dynamotest.On("TransactWriteItems"))
	key := func(sort string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{
			"pkey": &types.AttributeValueMemberS{Value: "g/order-0"}, "skey": &types.AttributeValueMemberS{Value: sort},
		}
	}

	_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Update: &types.Update{
			TableName: aws.String(checkpointTable), Key: key("position/a-0"), UpdateExpression: aws.String("SET #p = :p"),
			ExpressionAttributeNames:  map[string]string{"#p": attrPosition},
			ExpressionAttributeValues: map[string]types.AttributeValue{valuePut: &types.AttributeValueMemberN{Value: "7"}},
		}},
		{Put: &types.Put{TableName: aws.String(checkpointTable), Item: key("other")}},
	}})

	require.ErrorAs(t, err, new(*types.TransactionCanceledException))
	assert.Empty(t, oracle.streams, "nothing was written")
}
