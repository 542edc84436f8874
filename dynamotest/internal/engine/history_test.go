package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

// remembered is a database with one table and a clock that the test moves.
type remembered struct {
	*testing.T
	*Database
	now time.Time
}

func newRemembered(t *testing.T) *remembered {
	t.Helper()
	r := &remembered{T: t, now: time.Unix(1_700_000_000, 0)}
	r.Database = New(Config{Now: func() time.Time { return r.now }})
	_, err := r.CreateTable(&dynamodb.CreateTableInput{
		TableName: aws.String("tab"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("p"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("p"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	return r
}

func (r *remembered) put(p string) {
	r.Helper()
	_, err := r.PutItem(&Cost{}, &dynamodb.PutItemInput{
		TableName: aws.String("tab"), Item: value.Item{"p": &types.AttributeValueMemberS{Value: p}},
	})
	require.NoError(r, err)
}

// held returns how many changes the history holds, which must be the same by partition.
func (r *remembered) held() int {
	r.Helper()
	h := r.tables["tab"].history
	if h == nil {
		return 0
	}
	byPartition := 0
	for _, changes := range h.partitions {
		assert.NotEmpty(r, changes)
		byPartition += len(changes)
	}
	assert.Len(r, h.changes, byPartition)
	return byPartition
}

func TestTheHistoryHoldsChangesUpToItsAge(t *testing.T) {
	t.Parallel()
	r := newRemembered(t)
	r.put("a")
	assert.Zero(t, r.held(), "nothing asks for a history")

	r.Remember(time.Second)
	for i := range 1000 {
		r.put(fmt.Sprint(i % 7))
		r.now = r.now.Add(100 * time.Millisecond)
		require.LessOrEqual(t, r.held(), 10)
	}
	assert.Equal(t, 10, r.held())

	r.Remember(0)
	assert.Zero(t, r.held())
	r.put("a")
	assert.Zero(t, r.held())
}

func TestTheHistoryIsLimitedAlsoWhileTheClockStands(t *testing.T) {
	t.Parallel()
	r := newRemembered(t)
	r.Remember(time.Second)
	for i := range maxHistory + 100 {
		r.put(fmt.Sprint(i % 7))
	}
	assert.Equal(t, maxHistory, r.held())
}
