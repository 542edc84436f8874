package checkpoint_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// claim returns the position and whether one is stored.
func (s store) claim(t *testing.T, g checkpoint.Group, epoch uint64) (uint64, bool) {
	t.Helper()
	position, found, err := s.Claim(t.Context(), g, x, epoch)
	require.NoError(t, err)
	return position, found
}

func TestAPositionBelongsToTheNewestEpoch(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	position, found := s.claim(t, group, 1)
	assert.Zero(t, position)
	assert.False(t, found)
	require.NoError(t, s.Advance(t.Context(), group, x, 1, 0, 5))
	require.ErrorIs(t, s.Advance(t.Context(), group, x, 1, 0, 7), checkpoint.ErrFenced, "the position is not the one that the caller expects")
	require.NoError(t, s.Advance(t.Context(), group, x, 1, 5, 6))

	position, found = s.claim(t, group, 2)
	assert.EqualValues(t, 6, position)
	assert.True(t, found)
	require.ErrorIs(t, s.Advance(t.Context(), group, x, 1, 6, 7), checkpoint.ErrFenced)
	_, _, err := s.Claim(t.Context(), group, x, 1)
	require.ErrorIs(t, err, checkpoint.ErrFenced)
	position, _ = s.claim(t, group, 2)
	assert.EqualValues(t, 6, position, "again")

	for _, other := range []checkpoint.Group{{Name: "another"}, {Name: "group", Resets: 1}} {
		position, found = s.claim(t, other, 1)
		assert.Zero(t, position)
		assert.False(t, found)
	}
}

func TestAFirstPositionNeedsNoClaimAndYieldsToOne(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	require.NoError(t, s.Advance(t.Context(), group, x, 1, 0, 5))
	require.ErrorIs(t, s.Advance(t.Context(), group, x, 1, 0, 7), checkpoint.ErrFenced, "there is a position already")
	require.NoError(t, s.Advance(t.Context(), group, x, 1, 5, 7))

	other := account("other")
	_, _, err := s.Claim(t.Context(), group, other, 2)
	require.NoError(t, err)
	require.ErrorIs(t, s.Advance(t.Context(), group, other, 1, 0, 1), checkpoint.ErrFenced, "a newer epoch has claimed it")
	require.NoError(t, s.Advance(t.Context(), group, other, 2, 0, 1))
}

func TestAnAdvanceWhoseReplyWasLostHasTakenPlace(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.loseFirst("UpdateItem")
	s.claim(t, group, 1)
	require.NoError(t, s.Advance(t.Context(), group, x, 1, 0, 3))
	require.NoError(t, s.Advance(t.Context(), group, x, 1, 3, 4))
	position, _ := s.claim(t, group, 2)
	assert.EqualValues(t, 4, position)
}

func TestAnAdvanceThatIsPartOfATransactionIsFencedAndRecognised(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	commit := func(epoch, from, to uint64) map[string]types.AttributeValue {
		_, err := s.client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{s.AdvanceItem(group, x, epoch, from, to)},
		})
		if err == nil {
			return nil
		}
		var canceled *types.TransactionCanceledException
		require.ErrorAs(t, err, &canceled)
		return canceled.CancellationReasons[0].Item
	}
	require.Nil(t, commit(1, 0, 2))
	old := commit(1, 0, 2)
	assert.True(t, checkpoint.Reached(old, 1, 2), "it was done before")
	assert.False(t, checkpoint.Reached(old, 1, 3))
	s.claim(t, group, 2)
	old = commit(1, 2, 3)
	require.NotNil(t, old)
	assert.False(t, checkpoint.Reached(old, 1, 3))
	require.Nil(t, commit(2, 2, 3))
}

func TestAnOperatorPutsAPositionAnywhere(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	require.NoError(t, s.Advance(t.Context(), group, x, 1, 0, 5))
	require.NoError(t, s.PutPosition(t.Context(), group, x, 2, 1))
	require.ErrorIs(t, s.Advance(t.Context(), group, x, 1, 5, 6), checkpoint.ErrFenced)
	require.ErrorIs(t, s.PutPosition(t.Context(), group, x, 1, 9), checkpoint.ErrFenced)
	position, found := s.claim(t, group, 3)
	assert.EqualValues(t, 1, position)
	assert.True(t, found)
	require.NoError(t, s.PutPosition(t.Context(), group, x, 3, 0))
	_, found = s.claim(t, group, 3)
	assert.True(t, found, "0 is a position too: a group that starts at a time does not seek its baseline again")
	require.NoError(t, s.Advance(t.Context(), group, x, 3, 0, 1))
}

func TestPositionsAreReadByTheHundredAndToTheLast(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	want := map[aggregate.ID]uint64{}
	ids := []aggregate.ID{x}
	for n := range 150 {
		id := account(fmt.Sprintf("a/%d-0", n))
		ids = append(ids, id)
		want[id] = uint64(n + 1)
		require.NoError(t, s.Advance(t.Context(), group, id, 1, 0, uint64(n+1)))
	}
	_, _, err := s.Claim(t.Context(), group, x, 1) // this stores no position
	require.NoError(t, err)
	s.proxy.Inject(dynamotest.Unprocessed(70), dynamotest.On("BatchGetItem"), dynamotest.Times(2))

	positions, err := s.Positions(t.Context(), shard, ids, true)

	require.NoError(t, err)
	assert.Equal(t, want, positions)
	positions, err = s.Positions(t.Context(), shard, nil, false)
	require.NoError(t, err)
	assert.Empty(t, positions)
}

func TestACorruptPositionIsReportedAsCorrupt(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.put(t, "group/account-0", "position/x-0", item{"position": text("five")})
	_, _, err := s.Claim(t.Context(), group, x, 1)
	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	_, err = s.Positions(t.Context(), shard, []aggregate.ID{x}, true)
	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
}

func TestABaselineIsAfterTheLastEventBeforeTheStart(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.write(t, x, 5)
	head, err := s.journal.Head(t.Context(), x)
	require.NoError(t, err)
	written := time.Now()
	for start, want := range map[time.Time]uint64{
		{}:                         0,
		written.Add(-time.Hour):    0,
		written.Add(2 * time.Hour): 5,
	} {
		baseline, err := s.Baseline(t.Context(), head, start)
		require.NoError(t, err)
		assert.Equal(t, want, baseline, start)
	}
	require.NoError(t, s.journal.Delete(t.Context(), x, 5, journal.RemoveOptions{}))
	head, err = s.journal.Head(t.Context(), x)
	require.NoError(t, err)
	baseline, err := s.Baseline(t.Context(), head, written.Add(-time.Hour))
	require.NoError(t, err)
	assert.EqualValues(t, 5, baseline)
}
