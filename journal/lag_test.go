package journal_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
)

// hide leaves out the items whose sequence number should be hidden.
func (s store) hide(items []item, hidden func(number int) bool) []item {
	return slices.DeleteFunc(items, func(it item) bool {
		n, err := strconv.Atoi(it[s.Engine.Config.Attributes.SequenceNumber].(*types.AttributeValueMemberN).Value)
		return err == nil && hidden(n)
	})
}

// DynamoDB's aggregate index lags behind the table, that of DynamoDB Local does not. So the test
// simulates the lag.
func TestWhatTheIndexLagsBehindIsReadByKey(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		const n = 250
		const seed = 46
		s.write(t, user("1"), 1, n)
		for name, lag := range map[string]func(r *rand.Rand) func(number int) bool{
			"the last event":       func(*rand.Rand) func(int) bool { return func(number int) bool { return number == n } },
			"the last few":         func(*rand.Rand) func(int) bool { return func(number int) bool { return number > n-7 } },
			"the last commit":      func(*rand.Rand) func(int) bool { return func(number int) bool { return number > 198 } },
			"more than one batch":  func(*rand.Rand) func(int) bool { return func(number int) bool { return number > 20 && number <= 230 } },
			"the first":            func(*rand.Rand) func(int) bool { return func(number int) bool { return number == 1 } },
			"everything":           func(*rand.Rand) func(int) bool { return func(int) bool { return true } },
			"a whole page":         func(*rand.Rand) func(int) bool { return func(number int) bool { return number > 50 && number <= 100 } },
			"some here and there":  func(r *rand.Rand) func(int) bool { return func(int) bool { return r.IntN(10) == 0 } },
			"half of it at random": func(r *rand.Rand) func(int) bool { return func(int) bool { return r.IntN(2) == 0 } },
		} {
			t.Run(name, func(t *testing.T) {
				t.Logf("seed %d", seed)
				hidden := lag(rand.New(rand.NewPCG(seed, 0)))
				client := &meddler{Client: s.client}
				client.query = func(_ int, in *dynamodb.QueryInput, send func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
					in.Limit = aws.Int32(50) // pages of 50
					out, err := send()
					if err == nil {
						out.Items = s.hide(out.Items, hidden)
					}
					return out, err
				}
				client.batchGet = func(_ int, in *dynamodb.BatchGetItemInput, send func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
					for table, keys := range in.RequestItems {
						assert.True(t, *keys.ConsistentRead, "an eventually consistent read of %s could miss them again", table)
					}
					return send()
				}

				records, err := read(t, s.through(t, client), user("1"), 1, n)

				require.NoError(t, err)
				requireNumbers(t, records, 1, n)
			})
		}
	})
}

// Head and events are separate reads. While a transaction is being written, one can become visible
// before the other.
func TestAnEventThatIsAbsentForAMomentIsReadAgain(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		for name, c := range map[string]struct {
			events        int
			hidden        func(number int) bool
			transactional bool // absent until it is read in a transaction
		}{
			"one":                      {1, func(int) bool { return true }, false},
			"all of a commit":          {5, func(int) bool { return true }, false},
			"the end of it":            {5, func(n int) bool { return n > 3 }, false},
			"one in the middle":        {20, func(n int) bool { return n == 10 }, false},
			"one, for longer":          {1, func(int) bool { return true }, true},
			"a whole batch for longer": {60, func(int) bool { return true }, true},
		} {
			t.Run(name, func(t *testing.T) {
				s.write(t, user(name), 1, c.events)
				reads := 0
				visible := func() bool {
					reads++
					return reads > 2 && !c.transactional
				}
				client := &meddler{Client: s.client}
				client.query = func(_ int, _ *dynamodb.QueryInput, send func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
					out, err := send()
					out.Items = s.hide(out.Items, c.hidden)
					return out, err
				}
				client.batchGet = func(_ int, _ *dynamodb.BatchGetItemInput, send func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
					out, err := send()
					if table := s.Config().Tables.Journal; !visible() {
						out.Responses[table] = s.hide(out.Responses[table], c.hidden)
					}
					return out, err
				}
				client.getItem = func(_ int, in *dynamodb.GetItemInput, send func() (*dynamodb.GetItemOutput, error)) (*dynamodb.GetItemOutput, error) {
					out, err := send()
					if in.Key[s.Engine.Config.Attributes.SortKey].(*types.AttributeValueMemberS).Value != "descriptor" && !visible() {
						out.Item = nil
					}
					return out, err
				}

				records, err := read(t, s.through(t, client), user(name), 1, uint64(c.events))

				require.NoError(t, err)
				requireNumbers(t, records, 1, c.events)
				assert.Equal(t, c.transactional, client.calls["transGet"] > 0)
			})
		}
	})
}

func TestAReadTransactionThatMeetsAWriterIsSentAgain(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	s.write(t, user("1"), 1, 3)
	client := &meddler{Client: s.client}
	client.batchGet = func(_ int, _ *dynamodb.BatchGetItemInput, send func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
		out, err := send()
		out.Responses = nil
		return out, err
	}
	held := 3
	client.transGet = func(call int, _ *dynamodb.TransactGetItemsInput, send func() (*dynamodb.TransactGetItemsOutput, error)) (*dynamodb.TransactGetItemsOutput, error) {
		if call <= held {
			return nil, &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{{Code: aws.String("TransactionConflict")}}}
		}
		return send()
	}

	records, err := read(t, s.through(t, client), user("1"), 1, 3)
	require.NoError(t, err)
	requireNumbers(t, records, 1, 3)

	held = math.MaxInt
	_, err = read(t, s.through(t, client, impatient), user("1"), 1, 3)
	assert.ErrorIs(t, err, journal.ErrContended)
}

func TestKeysThatDynamoDBLeavesUnprocessedAreAskedForAgain(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 8)
		table := s.Config().Tables.Journal
		client := &meddler{Client: s.client}
		client.batchGet = func(call int, in *dynamodb.BatchGetItemInput, send func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
			asked := in.RequestItems[table]
			if call == 1 {
				return &dynamodb.BatchGetItemOutput{UnprocessedKeys: map[string]types.KeysAndAttributes{table: asked}}, nil
			}
			later := asked
			later.Keys, asked.Keys = asked.Keys[1:], asked.Keys[:1]
			in.RequestItems[table] = asked
			out, err := send()
			if err == nil && len(later.Keys) > 0 {
				out.UnprocessedKeys = map[string]types.KeysAndAttributes{table: later}
			}
			return out, err
		}

		records, err := read(t, s.through(t, client), user("1"), 1, 8)

		require.NoError(t, err)
		requireNumbers(t, records, 1, 8)
		assert.Equal(t, 9, client.calls["batchGet"])
	})
}

func TestKeysThatStayUnprocessedBeyondTheBudgetAreThrottling(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 8)
		client := &meddler{Client: s.client}
		client.batchGet = func(_ int, in *dynamodb.BatchGetItemInput, _ func() (*dynamodb.BatchGetItemOutput, error)) (*dynamodb.BatchGetItemOutput, error) {
			return &dynamodb.BatchGetItemOutput{UnprocessedKeys: in.RequestItems}, nil
		}

		_, err := read(t, s.through(t, client, impatient), user("1"), 1, 8)

		require.ErrorIs(t, err, journal.ErrThrottled)
		assert.ErrorContains(t, err, fmt.Sprintf("table %q left 8 keys unprocessed", s.Config().Tables.Journal))
	})
}
