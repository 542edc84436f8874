package checkpoint_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
)

// inRows returns a store whose positions are in rows of the checkpoint table, under other keys.
func inRows(t *testing.T) (store, *checkpoint.Store, checkpoint.Rows) {
	t.Helper()
	s := setup(t, 1)
	rows := checkpoint.Rows{Table: "checkpoint", PartitionKey: "pkey", Prefix: "row/", SortKey: "skey", Sort: "row"}
	return s, s.In(&rows), rows
}

func TestASkipOfADeletedRowWritesNoRecord(t *testing.T) {
	t.Parallel()
	s, in, rows := inRows(t)
	_, _, err := in.Claim(t.Context(), group, x, 1)
	require.NoError(t, err)
	first := checkpoint.Skipped{Aggregate: x, Number: 1, Epoch: 1}
	require.NoError(t, in.Skip(t.Context(), group, in.AdvanceItem(group, x, 1, 0, 1), first))
	require.NoError(t, s.remove(t, rows.Key(x)))
	skipped := checkpoint.Skipped{Aggregate: x, Number: 2, Epoch: 1}
	err = in.Skip(t.Context(), group, in.AdvanceItem(group, x, 1, 1, 2), skipped)
	require.Error(t, err)
	require.NotErrorIs(t, err, checkpoint.ErrFenced, "the owner claims the position again")
	_, found, err := in.ReadSkipped(t.Context(), group, x, 2)
	require.NoError(t, err)
	assert.False(t, found)

	_, _, err = in.Claim(t.Context(), group, x, 2)
	require.NoError(t, err)
	require.ErrorIs(t, in.Skip(t.Context(), group, in.AdvanceItem(group, x, 1, 1, 2), skipped), checkpoint.ErrFenced)
	require.ErrorIs(t, in.PutPosition(t.Context(), group, x, 1, 5), checkpoint.ErrFenced)
	_, _, err = in.ReadPosition(t.Context(), group, x, 1)
	require.ErrorIs(t, err, checkpoint.ErrFenced)
}

func TestASkipOfAParkedRowSucceedsAgainAfterALostReply(t *testing.T) {
	t.Parallel()
	_, in, _ := inRows(t)
	_, _, err := in.Claim(t.Context(), group, x, 1)
	require.NoError(t, err)
	require.NoError(t, in.PutPosition(t.Context(), group, x, 1, 1))
	parked := storage.Behind{Aggregate: x, Head: 2, Parked: &storage.Failure{Number: 2}}
	for range 2 {
		require.NoError(t, in.SkipParked(t.Context(), group, parked, 1, true, checkpoint.Skipped{Aggregate: x, Number: 2, Epoch: 1}))
	}

	parked.Parked.Number = 3
	third := checkpoint.Skipped{Aggregate: x, Number: 3, Epoch: 1}
	require.ErrorIs(t, in.SkipParked(t.Context(), group, parked, 1, true, third), checkpoint.ErrMoved, "it is at 2")
}

func (s store) remove(t *testing.T, key map[string]types.AttributeValue) error {
	t.Helper()
	_, err := s.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("checkpoint"), Key: key})
	return err
}

func TestTheMembershipSaysWhereTheRowsAre(t *testing.T) {
	t.Parallel()
	s, _, rows := inRows(t)
	seen := s.create(t, []int{0})
	next := seen
	next.Rows = &rows
	s.change(t, key, seen, next)
	now := s.read(t)
	assert.Equal(t, &rows, now.Rows)
	assert.False(t, now.ExternalPositions)
	assert.True(t, now.MayHold(&rows))
	assert.False(t, now.MayHold(nil))
	assert.False(t, now.MayHold(&checkpoint.Rows{Table: "checkpoint", PartitionKey: "pkey"}))
}
