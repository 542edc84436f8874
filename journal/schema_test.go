package journal_test

import (
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

func TestSchemaDescribesTheTablesThatCreateMakes(t *testing.T) {
	t.Parallel()
	units := int64(5)
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		db := dynamotest.New(t)
		var mu sync.Mutex
		var created []*dynamodb.CreateTableInput
		expiry := map[string]string{}
		db.Inject(dynamotest.Throttle(), dynamotest.Matching(func(_ string, input any) bool {
			mu.Lock()
			defer mu.Unlock()
			switch in := input.(type) {
			case *dynamodb.CreateTableInput:
				created = append(created, in)
			case *dynamodb.UpdateTimeToLiveInput:
				expiry[*in.TableName] = *in.TimeToLiveSpecification.AttributeName
			}
			return false
		}))
		config := journal.Config{
			Layout: layout, Shards: 2, Tables: journal.Tables{Journal: "orders"},
			Throughput: &types.ProvisionedThroughput{ReadCapacityUnits: &units, WriteCapacityUnits: &units},
		}
		ttl := "ttl"
		if layout == journal.Classic {
			ttl = "expires"
			config.Classic.Attributes.TTL = ttl
		}
		require.NoError(t, journal.Create(t.Context(), db.Client(), config))

		config.Shards = 0
		schema, err := journal.Schema(config)
		require.NoError(t, err)
		require.Len(t, schema, 3)
		for i, table := range schema {
			assert.Equal(t, created[i], table.Input)
			assert.Equal(t, expiry[*table.Input.TableName], table.TimeToLive)
		}
		assert.Equal(t, map[string]string{"orders": ttl, "snapshot": ttl}, expiry)
	})
}

func TestSchemaRefusesWhatCreateRefuses(t *testing.T) {
	t.Parallel()
	_, err := journal.Schema(journal.Config{Layout: journal.Packed, Tables: journal.Tables{Journal: "a b"}})
	assert.ErrorAs(t, err, new(*journal.ConfigError))
	_, err = journal.Schema(journal.Config{})
	assert.ErrorContains(t, err, "Layout is empty")
}
