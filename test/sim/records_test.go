package sim

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/test/campaign"
)

// skip records the transaction of a member that skips an event.
func (s scene) skip(m *member, number uint64) {
	s.record(m, s.s, number)
	s.store(m, s.s, number, false)
}

func TestTheOracleFindsNothingWhereAnEventIsSkippedWithARecord(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.skips["g"] = true
	s.handle(s.a, 1)
	s.deliver(t.Context(), s.a, s.s, 2)
	s.nack(t.Context(), s.a, s.s, 2)
	s.skip(s.a, 2)
	s.handle(s.a, 3)
	s.compareRecords(map[stream][]uint64{s.s: {2}})
	assert.Empty(t, s.findings)
}

func TestTheOracleFindsWhatComesAgainFromTheMemberThatSkippedIt(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.skips["g"] = true
	s.skip(s.a, 1)
	s.deliver(t.Context(), s.b, s.s, 1) // it has not noticed yet
	assert.Empty(t, s.findings)
	s.deliver(t.Context(), s.a, s.s, 1)
	assert.Equal(t, []campaign.Kind{Passed}, s.kinds())
}

func TestTheOracleFindsAMemberThatSkipsWhatItShouldNot(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.skip(&member{name: "operator"}, 1)
	assert.Empty(t, s.findings)
	s.skip(s.a, 2)
	assert.Equal(t, []campaign.Kind{Passed}, s.kinds())
}

func TestTheOracleFindsRecordsThatAreNotThereOrShouldNotBe(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.skips["g"] = true
	s.skip(s.a, 1)
	s.compareRecords(nil)
	assert.Equal(t, []campaign.Kind{Passed}, s.kinds())
	s.handle(s.a, 2)
	s.store(s.a, s.s, 2, true)
	s.compareRecords(map[stream][]uint64{s.s: {1, 2}})
	assert.Equal(t, []campaign.Kind{Passed, Passed}, s.kinds())
}

func TestTheOracleFindsWhatGoesOutAfterAnEventHasStoppedTheGroup(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.enrol(s.a, membershipChange{membership: "g/order", stopped: true})
	s.handle(s.b, 1) // it has not sent a heartbeat yet
	assert.Empty(t, s.findings)
	s.b.notices = -time.Hour
	s.handle(s.b, 2)
	assert.Equal(t, []campaign.Kind{Restless}, s.kinds())
	s.enrol(s.a, membershipChange{membership: "g/order"})
	s.handle(s.b, 3)
	assert.Len(t, s.findings, 1, "it was resumed")
}

func TestARecordIsReadFromItsTransaction(t *testing.T) {
	t.Parallel()
	record := types.TransactWriteItem{Put: &types.Put{TableName: aws.String(checkpointTable), Item: map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: "g/order-3"}, "skey": &types.AttributeValueMemberS{Value: "event/a-1-000000000000000c"},
		"number": numberValue(12),
	}}}
	position := types.TransactWriteItem{Update: &types.Update{
		TableName: aws.String(checkpointTable),
		Key: map[string]types.AttributeValue{
			"pkey": &types.AttributeValueMemberS{Value: "g/order-3"}, "skey": &types.AttributeValueMemberS{Value: "position/a-1-0"},
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": numberValue(12)},
	}}
	in := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{position, record}}
	s := stream{"g", "order", "a-1"}
	assert.Equal(t, []recordWrite{{s, 12}}, recordWrites(in))
	assert.Equal(t, []positionWrite{{stream: s, shard: 3, to: 12, put: true}}, positionWrites(in), "also an operator's")
	assert.False(t, isHandling(in))
	assert.Len(t, recordWrites(Rehandle.spoil(in)), 1)
	assert.Empty(t, positionWrites(Rehandle.spoil(in)))
	assert.Empty(t, recordWrites(Unrecord.spoil(in)))
	assert.Len(t, positionWrites(Unrecord.spoil(in)), 1)
}
