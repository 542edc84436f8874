package dynamotest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

func TestAClockThatWasFrozenRunsOnFromWhereItStood(t *testing.T) {
	t.Parallel()
	clock := dynamotest.New(t).Clock()
	clock.Advance(time.Hour)
	early := time.Now()
	clock.Freeze()
	late := time.Now()
	at := clock.Now()
	assert.WithinRange(t, at, early.Add(time.Hour), late.Add(time.Hour), "freezing does not move it")
	time.Sleep(20 * time.Millisecond)
	before := time.Now()
	clock.Resume()
	passed := clock.Now().Sub(at)
	assert.LessOrEqual(t, passed, time.Since(before), "the time that it was frozen has not passed")
	assert.GreaterOrEqual(t, passed, time.Duration(0))
}

func TestAReplyHasTheTimeOfTheDatabase(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Clock().Freeze()
	tab.db.Clock().Set(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://dynamotest", strings.NewReader("{}"))
	require.NoError(t, err)
	request.Header.Set("X-Amz-Target", "DynamoDB_20120810.ListTables")
	request.Header.Set("Authorization", "any")
	reply := httptest.NewRecorder()
	tab.db.Handler().ServeHTTP(reply, request)
	assert.Equal(t, "Wed, 02 Jan 2030 03:04:05 GMT", reply.Header().Get("Date"))
}

func (t *table) expireBy(attribute string) {
	t.Helper()
	_, err := t.client.UpdateTimeToLive(t.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName:               aws.String("tab"),
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(attribute), Enabled: aws.Bool(true)},
	})
	require.NoError(t, err)
}

func TestAnItemThatATransactionHoldsExpiresAfterIt(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Clock().Freeze()
	tab.expireBy("ttl")
	tab.put("a", 1, object{"ttl": n(tab.db.Clock().Now().Unix() + 10)})
	tab.db.Inject(dynamotest.Hold(func(context.Context) {
		tab.db.Clock().Advance(time.Minute)
		assert.NotEmpty(t, tab.get("a", 1), "while it is held")
	}))
	in := adding(1, "b")
	in.TransactItems = append(in.TransactItems, types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: aws.String("tab"), Key: keyOf("a", 1), ConditionExpression: aws.String("attribute_exists(p)"),
	}})
	require.NoError(t, done(t.Context(), tab.client.TransactWriteItems, in))
	assert.Empty(t, tab.get("a", 1))
}

func TestItemsThatWereThereBeforeExpireToo(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.db.Clock().Freeze()
	now := tab.db.Clock().Now().Unix()
	tab.put("whole", 1, object{"ttl": n(now + 10)})
	tab.put("part", 1, object{"ttl": n(fmt.Sprint(now+10, ".5"))})
	tab.expireBy("ttl")
	tab.db.Clock().Advance(11 * time.Second)
	assert.Empty(t, tab.get("whole", 1))
	assert.Empty(t, tab.get("part", 1))
}
