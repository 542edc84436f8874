package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
)

func TestTrailingReadsAreToldApartByTheirAge(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, trailingReads)
}

func trailingReads(t *testing.T) {
	t.Helper()
	read := func(age time.Duration) *dynamodb.QueryInput {
		return &dynamodb.QueryInput{
			IndexName: aws.String(tailIndex), ProjectionExpression: aws.String("#pk"),
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":shard": &types.AttributeValueMemberS{Value: "order-3"}, ":until": numberValue(uint64(time.Now().Add(-age).UnixMilli())),
			},
		}
	}
	first, last := read(500*time.Millisecond), read(4*time.Second)
	live := read(0)
	live.ProjectionExpression = nil
	for sabotage, want := range map[Sabotage][3]bool{Blink: {false, true, false}, Overlook: {false, false, true}, Skip: {}} {
		w := &wire{sabotage: sabotage, trailing: 4 * time.Second}
		assert.Equal(t, want, [3]bool{w.isOverlooked(live), w.isOverlooked(first), w.isOverlooked(last)}, sabotage)
	}
	empty := (&wire{sabotage: Blink, trailing: 4 * time.Second}).spoil(first).(*dynamodb.QueryInput)
	assert.Equal(t, "none", text(empty.ExpressionAttributeValues[":shard"]))
	assert.Equal(t, "order-3", text(first.ExpressionAttributeValues[":shard"]))
}

func TestAClaimIsToldAnotherPosition(t *testing.T) {
	t.Parallel()
	row := func(position string) string {
		return `{"pkey":{"S":"g/order-3"},"skey":{"S":"position/a1-0"}` + position + `}`
	}
	five, six := row(`,"position":{"N":"5"}`), row(`,"position":{"N":"6"}`)
	w := &wire{sabotage: Rewind, known: map[string]string{}}
	for _, reply := range []string{`{"Attributes":%}`, `{"Item":%}`, `{"Responses":{"checkpoint":[%]}}`} {
		w.expect(t, fill(reply, five), fill(reply, row("")))
	}
	w.sabotage = Recall
	w.expect(t, fill(`{"Attributes":%}`, five), fill(`{"Attributes":%}`, five))
	w.expect(t, fill(`{"Item":%}`, six), fill(`{"Item":%}`, five))
}

func fill(reply, row string) string { return strings.ReplaceAll(reply, "%", row) }

func (w *wire) expect(t *testing.T, reply, want string) {
	t.Helper()
	got, err := w.misremember([]byte(reply))
	require.NoError(t, err)
	assert.JSONEq(t, want, string(got))
}

func TestAnEntryIsWrittenWhateverItsRevision(t *testing.T) {
	t.Parallel()
	key := map[string]types.AttributeValue{"skey": &types.AttributeValueMemberS{Value: "behind/a"}}
	table, revised := aws.String(checkpointTable), aws.String("#e < :e OR #e = :e AND #r <= :r")
	write := Unrevise.spoil(&dynamodb.UpdateItemInput{TableName: table, Key: key, ConditionExpression: revised}).(*dynamodb.UpdateItemInput)
	removal := Unrevise.spoil(&dynamodb.DeleteItemInput{TableName: table, Key: key, ConditionExpression: revised}).(*dynamodb.DeleteItemInput)
	assert.Equal(t, byEpoch, aws.ToString(write.ConditionExpression))
	assert.Equal(t, byEpoch, aws.ToString(removal.ConditionExpression))
}
