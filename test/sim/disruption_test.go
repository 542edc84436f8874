package sim

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/test/draw"
)

// planOf draws the plan of a world.
func planOf(t *testing.T, w World) *plan {
	t.Helper()
	p := newPlan(draw.New(w.Seed, w.Number), w)
	require.NoError(t, p.disrupt(draw.New(w.Seed, ^w.Number), w))
	return p
}

func TestEveryWorldHasADisruption(t *testing.T) {
	t.Parallel()
	seen := map[Disruption]int{}
	for number := range uint64(200) {
		p := planOf(t, World{Seed: 1, Number: number})
		require.NotEmpty(t, p.disruption.kinds)
		for _, kind := range p.disruption.kinds {
			seen[kind]++
		}
	}
	for _, kind := range Disruptions {
		assert.Greater(t, seen[kind], 40, kind)
	}
}

func TestAWorldHasTheDisruptionsThatAreAskedFor(t *testing.T) {
	t.Parallel()
	assert.Empty(t, planOf(t, World{Disrupt: "none"}).disruption.kinds)
	assert.Empty(t, planOf(t, World{Sabotage: Skip}).disruption.kinds)
	assert.Equal(t, []Disruption{Throttling}, planOf(t, World{Disrupt: "throttle", Sabotage: Skip}).disruption.kinds)
	assert.Error(t, newPlan(draw.New(1, 1), World{}).disrupt(draw.New(1, 1), World{Disrupt: "flood"}))
}

func TestARequestIsKnownByItsKind(t *testing.T) {
	t.Parallel()
	row := func(sort string) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"pkey": &types.AttributeValueMemberS{Value: "g/order-3"}, "skey": &types.AttributeValueMemberS{Value: sort}}
	}
	query := func(table, from string) *dynamodb.QueryInput {
		return &dynamodb.QueryInput{TableName: &table, ExpressionAttributeValues: map[string]types.AttributeValue{
			":from": &types.AttributeValueMemberS{Value: from},
		}}
	}
	batch := &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		checkpointTable: {Keys: []map[string]types.AttributeValue{row("position/a-0")}},
	}}
	for _, test := range []struct {
		in   any
		want request
	}{
		{&dynamodb.QueryInput{TableName: aws.String("journal"), IndexName: aws.String(tailIndex)}, tailQueries},
		{&dynamodb.GetItemInput{TableName: aws.String(snapshotTable), Key: row("a-0")}, headReads},
		{query(snapshotTable, ""), headReads},
		{&dynamodb.QueryInput{TableName: aws.String(journalTable), ScanIndexForward: aws.Bool(false)}, headReads},
		{&dynamodb.PutItemInput{TableName: aws.String(journalTable)}, transactions},
		{query(checkpointTable, "position/a-0"), positionReading},
		{query(checkpointTable, "behind/"), listRequests},
		{batch, positionReading},
		{&dynamodb.UpdateItemInput{TableName: aws.String(checkpointTable), Key: row("position/a-0")}, positionWriting},
		{&dynamodb.UpdateItemInput{TableName: aws.String(checkpointTable), Key: row(membershipRow)}, membershipRequests},
		{&dynamodb.GetItemInput{TableName: aws.String(checkpointTable), Key: row(membershipRow)}, membershipRequests},
		{&dynamodb.DeleteItemInput{TableName: aws.String(checkpointTable), Key: row("behind/a")}, listRequests},
		{&dynamodb.UpdateItemInput{TableName: aws.String(checkpointTable), Key: row("cursor")}, ""},
		{&dynamodb.TransactWriteItemsInput{}, transactions},
	} {
		assert.Equal(t, test.want, requestOf(test.in))
	}
}

func TestAWorldWithoutReconciliationHasNothingThatOnlyItFinds(t *testing.T) {
	t.Parallel()
	without := 0
	for number := range uint64(200) {
		p := planOf(t, World{Seed: 3, Number: number})
		for _, g := range p.groups {
			if g.config.Timing.ReconcileInterval < 0 {
				without++
				assert.False(t, p.wrongClocks || p.disruption.has(Clocks) || p.disruption.has(Imports) || p.disruption.has(IndexDelays))
			}
		}
	}
	assert.Greater(t, without, 10)
}
