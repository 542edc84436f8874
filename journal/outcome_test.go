package journal_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// one returns a commit of one event to a new aggregate.
func one(value string) storage.Commit {
	return storage.Commit{Aggregate: user(value), Events: events(1, 1)}
}

// requireWrittenOnce requires the commit's event in the store, and later events up to a version.
func (s store) requireWrittenOnce(t *testing.T, value string, receipt storage.Receipt, version int) {
	t.Helper()
	head := mustHead(t, s, user(value))
	require.EqualValues(t, version, head.Version)
	records, err := read(t, s.Engine, user(value), 1, uint64(version))
	require.NoError(t, err)
	requireNumbers(t, records, 1, version)
	require.Equal(t, receipt.CommitID, records[0].CommitID)
	require.Empty(t, s.get(t, s.Config().Tables.Journal, s.keyOf(user(value), version+1)))
}

// DynamoDB, like DynamoDB Local, remembers the token of a transaction for ten minutes, and answers
// a repetition like the first request.
func TestALostReplyIsSuccessOnce(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		sent := 0
		j := s.through(t, s.onCommits(func(call int, send func() (*http.Response, error)) (*http.Response, error) {
			if sent = call; call == 1 {
				return lose(t, send)
			}
			return send()
		}))

		receipt := mustAppend(t, j, one("1"))
		assert.Equal(t, 2, sent)
		assert.EqualValues(t, 1, receipt.Version)
		s.requireWrittenOnce(t, "1", receipt, 1)
	})
}

// After DynamoDB has forgotten the token, a repetition meets its own events.
func TestALostReplyIsSuccessAlsoWhenTheTokenIsForgotten(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for name, evaluatesAll := range map[string]bool{"all conditions are evaluated": true, "only the first false condition is": false} {
			t.Run(name, func(t *testing.T) {
				client := &meddler{Client: s.client}
				client.transact = func(call int, in *dynamodb.TransactWriteItemsInput, send func() (*dynamodb.TransactWriteItemsOutput, error)) (*dynamodb.TransactWriteItemsOutput, error) {
					if call == 1 {
						_, err := send()
						assert.NoError(t, err)
						// Another writer commits before the repetition, so the head does not show
						// the first commit any more.
						s.write(t, user(name), 2, 1)
						return nil, errConnectionLost
					}
					out, err := s.withoutToken(t, in)
					var canceled *types.TransactionCanceledException
					if !evaluatesAll && errors.As(err, &canceled) && len(canceled.CancellationReasons) > 1 {
						canceled.CancellationReasons[1] = types.CancellationReason{Code: aws.String("None")}
					}
					return out, err
				}
				j := s.through(t, client)

				receipt := mustAppend(t, j, one(name))
				assert.EqualValues(t, 1, receipt.Version)
				s.requireWrittenOnce(t, name, receipt, 2)
			})
		}
	})
}

// A client that repeats requests itself also meets its own events.
func TestACommitThatTheClientSentTwiceIsSuccess(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		client := &meddler{Client: s.client}
		client.transact = func(_ int, in *dynamodb.TransactWriteItemsInput, send func() (*dynamodb.TransactWriteItemsOutput, error)) (*dynamodb.TransactWriteItemsOutput, error) {
			_, err := send()
			assert.NoError(t, err)
			return s.withoutToken(t, in)
		}
		j := s.through(t, client)
		client.calls = nil

		receipt := mustAppend(t, j, one("1"))
		s.requireWrittenOnce(t, "1", receipt, 1)
		assert.Equal(t, map[string]int{"transact": 1}, client.calls, "the refusal itself tells")
	})
}

// withoutToken sends a transaction without its token, so DynamoDB does not recognize a repetition.
func (s store) withoutToken(t *testing.T, in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
	t.Helper()
	repetition := *in
	repetition.ClientRequestToken = nil
	return s.client.TransactWriteItems(t.Context(), &repetition)
}

// In the classic layout, only the events show which commit has written them. They are removed, so
// Append cannot report a conflict with certainty. In the packed layout, the commit's item stays.
func TestALostReplyWhoseEventsWereRemovedSinceIsNoConflict(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		client := &meddler{Client: s.client}
		client.transact = func(call int, in *dynamodb.TransactWriteItemsInput, _ func() (*dynamodb.TransactWriteItemsOutput, error)) (*dynamodb.TransactWriteItemsOutput, error) {
			out, err := s.withoutToken(t, in)
			if call > 1 {
				return out, err
			}
			require.NoError(t, err)
			mustAppend(t, s, storage.Commit{
				Aggregate: user("1"), Expected: 1, Events: events(2, 1), Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("state")},
			})
			require.NoError(t, s.Truncate(t.Context(), user("1"), 2, journal.RemoveOptions{}))
			return nil, errConnectionLost
		}

		_, err := s.through(t, client).Append(t.Context(), one("1"))

		if s.isPacked() {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
		require.NotErrorIs(t, err, journal.ErrConflict)
	})
}

func TestALostReplyOfATransactionThatLostARaceIsAConflict(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		j := s.through(t, s.onCommits(func(call int, send func() (*http.Response, error)) (*http.Response, error) {
			if call == 1 {
				s.write(t, user("1"), 1, 1)
				return nil, errConnectionLost
			}
			return send()
		}))

		_, err := j.Append(t.Context(), one("1"))

		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.EqualValues(t, 1, conflict.Actual)
	})
}

// The head may reach the version that a request under way expects. A conflict would mean that the
// commit is not written. The packed layout sends nothing before it has compared the version.
func TestALostReplyOfACommitThatExpectsAVersionYetToComeLeavesTheOutcomeOpen(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		for id, version := range map[string]int{"1": 0, "2": 1} {
			if version > 0 {
				s.write(t, user(id), 1, version)
			}
			proxy := dynamotest.NewProxy(t, s.client)
			late := proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))

			_, err := s.through(t, proxy.Client()).Append(t.Context(), storage.Commit{
				Aggregate: user(id), Expected: uint64(version + 1), Events: events(version+2, 1),
			})

			require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
			require.NotErrorIs(t, err, journal.ErrConflict)
			s.write(t, user(id), version+1, 1)
			require.Equal(t, 1, late.Arrive())
			assert.EqualValues(t, version+2, s.head(t, user(id)).Version, "so it came after all")
		}
	})
}

func TestARequestThatNeverArrivedIsSentAgain(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		j := s.through(t, s.onCommits(func(call int, send func() (*http.Response, error)) (*http.Response, error) {
			if call <= 2 {
				return nil, errConnectionLost
			}
			return send()
		}))

		receipt := mustAppend(t, j, one("1"))
		s.requireWrittenOnce(t, "1", receipt, 1)
	})
}

func TestARefusalAfterALostReplyLeavesTheOutcomeOpenUnlessTheTableTells(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for name, c := range map[string]struct {
			arrived bool // whether the attempt with the lost reply arrived
			refusal func() (*http.Response, error)
		}{
			"written, then no access":     {true, func() (*http.Response, error) { return refuse(http.StatusBadRequest, "AccessDeniedException", "") }},
			"not written, then no access": {false, func() (*http.Response, error) { return refuse(http.StatusBadRequest, "ExpiredTokenException", "") }},
			"written, then invalid":       {true, func() (*http.Response, error) { return cancelTransaction("ValidationError") }},
			"not written, then invalid":   {false, func() (*http.Response, error) { return cancelTransaction("ValidationError") }},
		} {
			t.Run(name, func(t *testing.T) {
				j := s.through(t, s.onCommits(func(call int, send func() (*http.Response, error)) (*http.Response, error) {
					switch {
					case call > 1:
						return c.refusal()
					case c.arrived:
						return lose(t, send)
					default:
						return nil, errConnectionLost
					}
				}))

				receipt, err := j.Append(t.Context(), one(name))

				if c.arrived {
					require.NoError(t, err)
					s.requireWrittenOnce(t, name, receipt, 1)
					return
				}
				require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
				assert.NotErrorIs(t, err, journal.ErrAccess, "which would say that nothing was written")
			})
		}
	})
}

// An error that means that nothing was written would make its caller repeat the command.
func TestAnOutcomeIsUnknownWhateverHoldsItsRepetitionUp(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func() (*http.Response, error){
		"another transaction":     func() (*http.Response, error) { return cancelTransaction("TransactionConflict") },
		"a throttled transaction": func() (*http.Response, error) { return cancelTransaction("ThrottlingError") },
		"a throttled request":     func() (*http.Response, error) { return refuse(http.StatusBadRequest, "ThrottlingException", "") },
		"no access":               func() (*http.Response, error) { return refuse(http.StatusBadRequest, "AccessDeniedException", "") },
		"no table":                func() (*http.Response, error) { return refuse(http.StatusBadRequest, "ResourceNotFoundException", "") },
	} {
		for schema, config := range configs() {
			t.Run(schema+"/"+name, func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) {
					s := setup(t, config)
					j := s.through(t, s.onCommits(func(call int, _ func() (*http.Response, error)) (*http.Response, error) {
						if call == 1 {
							return nil, errConnectionLost
						}
						return answer()
					}))

					_, err := j.Append(t.Context(), one(name))

					require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
					for _, sentinel := range []error{journal.ErrThrottled, journal.ErrAccess, journal.ErrTableMissing} {
						require.NotErrorIs(t, err, sentinel)
					}
					assert.NotContains(t, err.Error(), "nothing w")
					assert.ErrorContains(t, err, "says the test", "what DynamoDB said")
				})
			})
		}
	}
}

func TestWhatAnotherTransactionOrThrottlingHoldsUpIsSentAgain(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for name, answer := range map[string]func() (*http.Response, error){
			"another transaction on the head": func() (*http.Response, error) { return cancelTransaction("TransactionConflict") },
			"a throttled transaction":         func() (*http.Response, error) { return cancelTransaction("ThrottlingError") },
			"no throughput left":              func() (*http.Response, error) { return cancelTransaction("ProvisionedThroughputExceeded") },
			"a throttled request": func() (*http.Response, error) {
				return refuse(http.StatusBadRequest, "ThrottlingException", "")
			},
			"a throttled table": func() (*http.Response, error) {
				return refuse(http.StatusBadRequest, "ProvisionedThroughputExceededException", "")
			},
			"the first attempt under way": func() (*http.Response, error) {
				return refuse(http.StatusBadRequest, "TransactionInProgressException", "")
			},
			"a fault of the service": func() (*http.Response, error) {
				return refuse(http.StatusInternalServerError, "InternalServerError", "")
			},
			"no service for a moment": func() (*http.Response, error) { return refuse(http.StatusServiceUnavailable, "ServiceUnavailable", "") },
		} {
			t.Run(name, func(t *testing.T) {
				j := s.through(t, s.onCommits(func(call int, send func() (*http.Response, error)) (*http.Response, error) {
					if call <= 3 {
						return answer()
					}
					return send()
				}))

				receipt := mustAppend(t, j, one(name))
				s.requireWrittenOnce(t, name, receipt, 1)
			})
		}
	})
}

func TestThrottlingBeyondTheBudgetIsAnErrorAndNothingIsWritten(t *testing.T) {
	eachLayoutInFakeTime(t, func(t *testing.T, s store) {
		first, all := s.Config().Tables.Snapshot, fmt.Sprintf("%q or %q", s.Config().Tables.Journal, s.Config().Tables.Snapshot)
		if s.isPacked() { // a commit is one item in one table
			first, all = s.Config().Tables.Journal, fmt.Sprintf("%q", s.Config().Tables.Journal)
		}
		for name, c := range map[string]struct {
			answer func() (*http.Response, error)
			want   error
			text   string
		}{
			"another transaction on the head": {
				func() (*http.Response, error) { return cancelTransaction("TransactionConflict") }, journal.ErrContended,
				fmt.Sprintf("other transactions on the same items: table %q: try again", first),
			},
			"a throttled transaction": {
				func() (*http.Response, error) { return cancelTransaction("ThrottlingError") }, journal.ErrThrottled,
				fmt.Sprintf("no capacity left for table %q: try again later, or raise the capacity", first),
			},
			"a throttled request": {
				func() (*http.Response, error) { return refuse(http.StatusBadRequest, "ThrottlingException", "") }, journal.ErrThrottled,
				fmt.Sprintf("no capacity left for table %s: try again later", all),
			},
		} {
			j := s.through(t, s.onCommits(func(int, func() (*http.Response, error)) (*http.Response, error) {
				return c.answer()
			}), impatient)

			began := time.Now()
			_, err := j.Append(t.Context(), one(name))

			assertOnly(t, err, c.want)
			assert.Less(t, time.Since(began), time.Second, "%s: the budget is a nanosecond", name)
			require.NotErrorIs(t, err, journal.ErrOutcomeUnknown)
			assert.ErrorContains(t, err, fmt.Sprintf("append to %s, nothing written", user(name)))
			assert.ErrorContains(t, err, c.text)
			s.requireNothingWritten(t, user(name))
		}
	})
}

func TestAnOutcomeThatStaysUnknownUntilTheBudgetEndsIsReadFromTheTable(t *testing.T) {
	eachLayoutInFakeTime(t, func(t *testing.T, s store) {
		j := s.through(t, s.onCommits(func(_ int, send func() (*http.Response, error)) (*http.Response, error) {
			return lose(t, send)
		}), impatient)

		receipt := mustAppend(t, j, one("1"))
		s.requireWrittenOnce(t, "1", receipt, 1)
	})
}

func TestACommitOfAContextThatHasEndedIsNotSent(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		_, err := s.Append(ctx, one("1"))

		require.ErrorIs(t, err, context.Canceled)
		assert.NotErrorIs(t, err, journal.ErrOutcomeUnknown)
		assert.ErrorContains(t, err, "append to user-account-1, nothing written")
		s.requireNothingWritten(t, user("1"))
	})
}

func TestAContextThatEndsBetweenAttemptsThatWereRefusedLeavesNothingWritten(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		ctx, cancel := context.WithCancel(t.Context())
		j := s.through(t, s.onCommits(func(call int, _ func() (*http.Response, error)) (*http.Response, error) {
			if call == 2 {
				cancel()
			}
			return cancelTransaction("ThrottlingError")
		}), func(c *journal.Config) { c.RetryBudget = time.Hour })

		_, err := j.Append(ctx, one("1"))

		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, journal.ErrOutcomeUnknown)
		assert.ErrorIs(t, err, journal.ErrThrottled, "what it was waiting for")
		assert.ErrorContains(t, err, "append to user-account-1, nothing written")
		s.requireNothingWritten(t, user("1"))
	})
}

func TestAContextThatEndsInMidFlightLeavesAnOutcomeThatCanBeResolved(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for name, arrives := range map[string]bool{"after the request arrived": true, "before": false} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				j := s.through(t, s.onCommits(func(_ int, send func() (*http.Response, error)) (*http.Response, error) {
					if arrives {
						_, _ = lose(t, send)
					}
					cancel()
					return nil, ctx.Err()
				}))
				commit := one(name)
				commit.Events = events(1, 3)

				_, err := j.Append(ctx, commit)

				var unknown *journal.OutcomeUnknownError
				require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorAs(t, err, &unknown)
				assert.Equal(t, user(name), unknown.ID)
				assert.EqualValues(t, 1, unknown.First)
				assert.ErrorContains(t, err, "commit "+unknown.CommitID+", which begins with event 1,")
				assert.ErrorContains(t, err, "resolve it before repeating")
				written, err := s.Resolve(t.Context(), unknown)
				require.NoError(t, err)
				assert.Equal(t, arrives, written)

				// A later commit does not change this.
				if arrives {
					s.write(t, user(name), 4, 1)
				} else {
					s.write(t, user(name), 1, 4)
				}
				written, err = s.Resolve(t.Context(), unknown)
				require.NoError(t, err)
				assert.Equal(t, arrives, written)
			})
		}
	})
}

// A part of the other transaction is visible: its event, but not its head. This is not a corrupt
// event.
func TestACommitThatMeetsAnotherInPartIsSentAgain(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		client := &meddler{Client: s.client}
		client.transact = func(call int, _ *dynamodb.TransactWriteItemsInput, send func() (*dynamodb.TransactWriteItemsOutput, error)) (*dynamodb.TransactWriteItemsOutput, error) {
			if call > 1 {
				return send()
			}
			s.write(t, user("1"), 1, 1)
			return nil, &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{
				{Code: aws.String("TransactionConflict")}, {Code: aws.String("ConditionalCheckFailed")},
			}}
		}

		_, err := s.through(t, client).Append(t.Context(), one("1"))

		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.EqualValues(t, 1, conflict.Actual)
	})
}
