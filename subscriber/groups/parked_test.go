package groups_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// selectParked returns the failed events of the selected parked aggregates.
func (s store) selectParked(t *testing.T, selection groups.Selection) map[string]groups.BehindAggregate {
	t.Helper()
	found := map[string]groups.BehindAggregate{}
	for b, err := range s.SelectParked(t.Context(), selection) {
		require.NoError(t, err)
		assert.NotContains(t, found, b.Aggregate.Value)
		found[b.Aggregate.Value] = b
	}
	return found
}

func TestParkedAggregatesAreSelectedByReasonAndType(t *testing.T) {
	t.Parallel()
	_, s := manyParked(t, 3)
	testjournal.Append(t, s.Journal, storage.Commit{
		Aggregate: account("w"), Events: []storage.Event{{Type: "withdrawn", Payload: []byte("{}")}},
	})
	s.park(t, "w", 1, "no money")
	s.park(t, "lost", 3, "it fails") // its event is not in the journal
	listed := checkpoint.Behind{Aggregate: account("tried again"), Head: 1}
	require.NoError(t, checkpoint.New(s.Journal).ListBehind(t.Context(), checkpoint.Group{Name: group}, checkpoint.Revision{Epoch: 1}, listed))

	all := s.selectParked(t, groups.Selection{})
	assert.Len(t, all, 5)
	assert.Equal(t, "deposited", all["a0"].Parked.EventType)
	assert.Equal(t, "withdrawn", all["w"].Parked.EventType)
	assert.Empty(t, all["lost"].Parked.EventType)
	assert.EqualValues(t, 3, all["lost"].Next)
	assert.EqualValues(t, 1, all["w"].Next)
	byReason := s.selectParked(t, groups.Selection{Reason: "fails"})
	assert.Len(t, byReason, 4)
	assert.NotContains(t, byReason, "w")
	assert.Len(t, s.selectParked(t, groups.Selection{EventType: "withdrawn"}), 1)
	assert.Empty(t, s.selectParked(t, groups.Selection{EventType: "withdrawn", Reason: "fails"}))
}

func TestASelectionOfParkedAggregatesEndsWithAnError(t *testing.T) {
	t.Parallel()
	db, s := manyParked(t, 3)
	for _, err := range s.Of("nobody", topic).SelectParked(t.Context(), groups.Selection{}) {
		require.ErrorIs(t, err, groups.ErrNoGroup)
	}
	db.Inject(dynamotest.Refuse(&types.ResourceNotFoundException{}), dynamotest.On("Query"), dynamotest.Table("checkpoint"))
	failures := 0
	for _, err := range s.SelectParked(t.Context(), groups.Selection{}) {
		require.ErrorContains(t, err, `list parked aggregates of consumer group "group" on topic "account"`)
		failures++
	}
	assert.Equal(t, 1, failures)
}
