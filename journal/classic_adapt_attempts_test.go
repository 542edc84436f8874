package journal_test

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// transacting returns a journal whose transactions the test sends itself, and their tokens.
func (s store) transacting(t *testing.T, handle func(call int, in *dynamodb.TransactWriteItemsInput, send func() error) error) (*engine.Engine, *[]string) {
	t.Helper()
	var tokens []string
	client := &meddler{Client: s.client}
	client.transact = func(call int, in *dynamodb.TransactWriteItemsInput, send func() (*dynamodb.TransactWriteItemsOutput, error)) (*dynamodb.TransactWriteItemsOutput, error) {
		tokens = append(tokens, aws.ToString(in.ClientRequestToken))
		return &dynamodb.TransactWriteItemsOutput{}, handle(call, in, func() error { _, err := send(); return err })
	}
	return s.through(t, client), &tokens
}

// requireAfterAdapting requires the aggregate of putBack in the state after a commit of one event.
func (s store) requireAfterAdapting(t *testing.T, receipt storage.Receipt, snapshot *journal.Snapshot) {
	t.Helper()
	s.requireVersion(t, user("1"), 4)
	assert.EqualValues(t, 4, receipt.Version)
	assert.Equal(t, snapshot, s.head(t, user("1")).Snapshot)
	records, err := read(t, s.Engine, user("1"), 1, 4)
	require.NoError(t, err)
	requireNumbers(t, records, 1, 4)
	assert.Equal(t, receipt.CommitID, records[3].CommitID)
}

func TestACommitThatRemovesASnapshotIsWrittenOnceThoughRepliesAreLost(t *testing.T) {
	for _, snapshot := range []*journal.Snapshot{nil, stateAt(4)} {
		for name, handle := range map[string]func(t *testing.T, s store, call int, in *dynamodb.TransactWriteItemsInput, send func() error) error{
			"the first attempt did not arrive": func(_ *testing.T, _ store, call int, _ *dynamodb.TransactWriteItemsInput, send func() error) error {
				if call == 1 {
					return errConnectionLost
				}
				return send()
			},
			"the refusal was lost": func(_ *testing.T, _ store, call int, _ *dynamodb.TransactWriteItemsInput, send func() error) error {
				err := send()
				if call == 1 {
					return errConnectionLost
				}
				return err
			},
			"the attempt after the refusal did not arrive": func(_ *testing.T, _ store, call int, _ *dynamodb.TransactWriteItemsInput, send func() error) error {
				if call == 2 {
					return errConnectionLost
				}
				return send()
			},
			"the reply after the refusal was lost": func(t *testing.T, _ store, call int, _ *dynamodb.TransactWriteItemsInput, send func() error) error {
				err := send()
				if call == 2 {
					assert.NoError(t, err)
					return errConnectionLost
				}
				return err
			},
			"and its token is forgotten": func(t *testing.T, s store, call int, in *dynamodb.TransactWriteItemsInput, send func() error) error {
				switch call {
				case 1:
					return send()
				case 2:
					assert.NoError(t, send())
					return errConnectionLost
				}
				_, err := s.withoutToken(t, in)
				return err
			},
		} {
			t.Run(fmt.Sprint(name, ", with a snapshot: ", snapshot != nil), func(t *testing.T) {
				onClassic(t, func(t *testing.T, s store) {
					putBack(t, s)
					j, tokens := s.transacting(t, func(call int, in *dynamodb.TransactWriteItemsInput, send func() error) error {
						return handle(t, s, call, in, send)
					})

					receipt := mustAppend(t, j, storage.Commit{Aggregate: user("1"), Expected: 3, Events: events(4, 1), Snapshot: snapshot})
					s.requireAfterAdapting(t, receipt, snapshot)
					require.Len(t, *tokens, 3)
					first, last := (*tokens)[0], (*tokens)[2]
					assert.NotEqual(t, first, last, "another transaction has another token")
					assert.Contains(t, []string{first, last}, (*tokens)[1])
				})
			})
		}
	}
}

func TestACommitThatIsSentAgainForASnapshotAheadMeetsARival(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		putBack(t, s)
		j, tokens := s.transacting(t, func(call int, _ *dynamodb.TransactWriteItemsInput, send func() error) error {
			if call == 2 {
				_, err := s.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: 3, Events: events(4, 1), Snapshot: stateAt(4)})
				assert.NoError(t, err, "the rival finds the same snapshot")
			}
			return send()
		})

		_, err := j.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: 3, Events: events(4, 2), Snapshot: stateAt(5), CommandID: "c"})

		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.Equal(t, journal.ConflictError{ID: user("1"), Expected: 3, Actual: 4}, *conflict)
		assert.Len(t, *tokens, 2)
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 4, Snapshot: stateAt(4), Redundant: []uint64{1, 2, 3}}, s.head(t, user("1")))
	})
}

func TestAConflictWithACommitThatStoredASnapshotIsSentOnce(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.covered(t, user("1"), 4)
		j, tokens := s.transacting(t, func(_ int, _ *dynamodb.TransactWriteItemsInput, send func() error) error { return send() })

		_, err := j.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: 3, Events: events(4, 1), Snapshot: stateAt(4)})

		require.ErrorIs(t, err, journal.ErrConflict)
		assert.Len(t, *tokens, 1, "its snapshot is not ahead of the head, only of what was expected")
	})
}

func TestACommitIsSentAgainOnceForASnapshotAheadAndEndsIfThatDoesNotHelp(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		putBack(t, s)
		before := s.get(t, s.Config().Tables.Snapshot, s.keyOf(user("1"), 0))
		j, tokens := s.transacting(t, func(call int, in *dynamodb.TransactWriteItemsInput, send func() error) error {
			if call == 1 {
				return send()
			}
			reasons := make([]types.CancellationReason, len(in.TransactItems))
			reasons[0] = types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Item: before}
			return &types.TransactionCanceledException{CancellationReasons: reasons}
		})

		_, err := j.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: 3, Events: events(4, 1)})

		require.ErrorIs(t, err, journal.ErrConflict)
		assert.Len(t, *tokens, 2)
	})
}

func TestACommitWhoseSnapshotIsTakenOutKeepsItsCommandAndWrites(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c := s.callersTable(t)
		taken := item{"id": text("taken")}
		s.put(t, c.name, taken)
		newer := &journal.Snapshot{Number: 3, Payload: []byte("newer"), Schema: 2}
		mustAppend(t, s, storage.Commit{Aggregate: user("1"), Events: events(1, 3), Snapshot: newer})
		require.NoError(t, s.Truncate(t.Context(), user("1"), 3, journal.RemoveOptions{}))
		commit := storage.Commit{
			Aggregate: user("1"), Expected: 3, Events: events(4, 2), Snapshot: &journal.Snapshot{Number: 5, Payload: []byte("older"), Schema: 1},
			Redundancy: &storage.Redundancy{Keep: 1, Listed: []uint64{}}, CommandID: "c",
			Writes: []types.TransactWriteItem{c.count("n"), c.insert(taken)},
		}

		_, err := s.Append(t.Context(), commit)
		var refused *journal.WriteRefusedError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, 1, refused.Index)
		assert.Equal(t, taken, refused.Item)
		s.requireVersion(t, user("1"), 3)

		commit.Writes[1] = c.insert(item{"id": text("free")})
		receipt := mustAppend(t, s, commit)
		require.ErrorIs(t, receipt.SnapshotError, storage.ErrOldSchema)
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 5, Snapshot: newer, TruncatedBefore: 3}, s.head(t, user("1")))
		assert.Empty(t, s.snapshots(t, user("1")))
		assert.ElementsMatch(t, []item{taken, {"id": text("n"), "times": number(1)}, {"id": text("free")}}, s.scan(t, c.name))
		_, err = s.Append(t.Context(), commit)
		var duplicate *journal.DuplicateCommandError
		require.ErrorAs(t, err, &duplicate)
		assert.Equal(t, receipt.CommitID, duplicate.CommitID)
	})
}
