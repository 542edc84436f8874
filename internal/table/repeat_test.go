package table_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/internal/testdb"
)

func TestTheSDKsRetriesTakeTheirTimeFromTheBudgetOfTheCall(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		client := table.Bounded(db.Client())
		throttling := db.Inject(dynamotest.Throttle(), dynamotest.On("GetItem", "UpdateItem"))
		name := "journal"
		get := func(ctx context.Context) (sent int, took time.Duration) {
			before, began := throttling.Fired(), time.Now()
			_, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &name, Key: table.Item{
				"pkey": table.StringValue("x/y"), "skey": table.NumberValue(1),
			}})
			require.ErrorIs(t, dynamo.Explain(err, name), dynamo.ErrThrottled)
			return throttling.Fired() - before, time.Since(began)
		}

		sent, _ := get(t.Context())
		assert.Equal(t, 3, sent, "as the SDK does it")
		sent, _ = get(retry.WithBudget(t.Context(), time.Hour))
		assert.Equal(t, 3, sent)
		_, took := get(retry.WithBudget(t.Context(), time.Microsecond))
		assert.LessOrEqual(t, took, time.Microsecond)
		spent := retry.WithBudget(t.Context(), time.Hour)
		retry.BudgetOf(spent).Spend(time.Hour)
		sent, _ = get(spent)
		assert.Equal(t, 1, sent, "the first attempt is always sent")
	})
}
