package repository_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// eachInMemory runs a test with a database in memory for each layout, so that the test can inject
// faults.
func eachInMemory(t *testing.T, test func(t *testing.T, db *dynamotest.DB, s store)) {
	t.Helper()
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		db := dynamotest.New(t)
		test(t, db, openOn(t, db, journal.Config{Layout: layout}))
	})
}

// eachInMemoryInFakeTime runs a test about time limits with a database in memory for each layout.
func eachInMemoryInFakeTime(t *testing.T, test func(t *testing.T, db *dynamotest.DB, s store)) {
	t.Helper()
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		testdb.WithFakeTime(t, func(t *testing.T) {
			db := dynamotest.New(t)
			test(t, db, openOn(t, db, journal.Config{Layout: layout}))
		})
	})
}

func TestAnErrorOfSeveralAggregatesThatFollowsFromAnOldStateIsNotBelieved(t *testing.T) {
	eachInMemory(t, func(t *testing.T, db *dynamotest.DB, s store) {
		for name, test := range map[string]struct {
			rival  func(*repository.Repository[Account])
			decide func(p *repository.Participant[Account]) error
			opts   []repository.Option
		}{
			"too many": {
				func(r *repository.Repository[Account]) {
					mustExecute(t, r, "too many", Withdraw(140))
				},
				func(p *repository.Participant[Account]) error {
					for range p.State.Balance {
						p.Append(Withdrawn{1}, Noted{strings.Repeat("x", 100)})
					}
					return nil
				}, nil,
			},
			"too large": {
				func(r *repository.Repository[Account]) {
					mustExecute(t, r, "too large", Withdraw(140))
				},
				func(p *repository.Participant[Account]) error {
					p.Append(Noted{strings.Repeat("x", p.State.Balance*4<<10)})
					return nil
				}, nil,
			},
			"writes": {
				func(r *repository.Repository[Account]) {
					mustExecute(t, r, "writes", Deposit(1))
				},
				func(p *repository.Participant[Account]) error { p.Append(Deposited{1}); return nil },
				[]repository.Option{repository.WithWrites(func(c repository.Commit) ([]types.TransactWriteItem, error) {
					if c.Before < 2 {
						return nil, errors.New("too early")
					}
					return nil, nil
				})},
			},
		} {
			t.Run(name, func(t *testing.T) {
				repo := s.accounts(t, repository.Config{Cache: 10})
				endow(t, repo, name, 150)
				test.rival(open(t, s.direct).accounts(t, repository.Config{}))
				for range 2 {
					var tx repository.Transaction
					p := repo.AddTo(&tx, name)
					err := tx.Execute(t.Context(), func() error { return test.decide(p) }, test.opts...)
					assert.NoError(t, err)
				}
			})
		}
	})
}

func TestARefusedWriteDoesNotCountWhereAnotherParticipantHasMoved(t *testing.T) {
	eachInMemory(t, func(t *testing.T, db *dynamotest.DB, s store) {
		_, err := s.direct.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String("rows"), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: "S"}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: "HASH"}},
		})
		require.NoError(t, err)
		accounts, rival := s.accounts(t, repository.Config{}), open(t, s.direct).accounts(t, repository.Config{})
		endow(t, accounts, "a", 1)
		endow(t, accounts, "b", 1)
		row := func(repository.Commit) ([]types.TransactWriteItem, error) {
			return []types.TransactWriteItem{{Put: &types.Put{
				TableName: aws.String("rows"), Item: map[string]types.AttributeValue{"k": &types.AttributeValueMemberS{Value: "x"}},
				ConditionExpression: aws.String("attribute_not_exists(k)"),
			}}}, nil
		}
		var tx repository.Transaction
		a, b := accounts.AddTo(&tx, "a"), accounts.AddTo(&tx, "b")
		decisions := 0
		err = tx.Execute(t.Context(), func() error {
			decisions++
			if decisions == 1 {
				// Another writer takes the row, with an event of b that reports it.
				mustExecute(t, rival, "b", Deposit(1), repository.WithWrites(row))
			}
			if b.Version == 1 {
				a.Append(Deposited{1}) // would take the row
			}
			return nil
		}, repository.WithWrites(row))
		assert.NoError(t, err)
		assert.Equal(t, 2, decisions)
	})
}

// The outcome is unknown, the next run cannot load, and then the commit arrives.
func TestAParticipantThatWasReadIsReturnedAsTheDecisionSawIt(t *testing.T) {
	eachInMemoryInFakeTime(t, func(t *testing.T, db *dynamotest.DB, s0 store) {
		endow(t, s0.accounts(t, repository.Config{}), "read", 7)
		s := through(t, s0.direct).open(t, journal.Config{RetryBudget: 300 * time.Millisecond})
		accounts := s.accounts(t, repository.Config{})
		late := s.proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"))
		var tx repository.Transaction
		a, read := accounts.AddTo(&tx, "a"), accounts.AddTo(&tx, "read")
		decided := false
		loads := 0
		// After the outcome of the first commit is unknown, reads of "read" fail. Then the late
		// request arrives.
		s.proxy.Inject(dynamotest.Refuse(&types.InternalServerError{Message: aws.String("x")}), dynamotest.On("GetItem", "Query", "BatchGetItem"), dynamotest.Matching(func(op string, in any) bool {
			text := fmt.Sprint(keyText(in))
			if decided && strings.Contains(text, "read") {
				loads++
				late.Arrive()
				return true
			}
			return false
		}), dynamotest.Times(50))
		err := tx.Execute(t.Context(), func() error {
			decided = true
			a.Append(Deposited{1})
			return nil
		}, repository.WithCommandID("c"))
		require.NoError(t, err)
		assert.Positive(t, loads)
		assert.Equal(t, repository.Aggregate[Account]{ID: account("read"), State: Account{7}, Version: 1}, bare(read.Aggregate()))
		assert.Equal(t, repository.Aggregate[Account]{ID: account("a"), State: Account{1}, Version: 1}, bare(a.Aggregate()))
	})
}

func keyText(in any) string {
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		return keyOfMap(in.Key)
	case *dynamodb.QueryInput:
		return keyOfMap(in.ExpressionAttributeValues)
	case *dynamodb.BatchGetItemInput:
		var all string
		for _, k := range in.RequestItems {
			for _, key := range k.Keys {
				all += keyOfMap(key)
			}
		}
		return all
	}
	return ""
}

func keyOfMap(m map[string]types.AttributeValue) (text string) {
	for _, v := range m {
		if s, ok := v.(*types.AttributeValueMemberS); ok {
			text += s.Value + " "
		}
	}
	return text
}

func TestAParticipantThatAppendsAnEventThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	_, s := onDynamotest(t)
	var tx repository.Transaction
	p := s.accounts(t, repository.Config{}).AddTo(&tx, "a")
	err := tx.Execute(t.Context(), func() error { p.Append(nil); return nil })
	assert.ErrorAs(t, err, new(*aggregate.UnencodableEventError))
}

func TestACommandIsNotRefusedForItsOwnEffectThatShowsInPart(t *testing.T) {
	eachInMemory(t, func(t *testing.T, db *dynamotest.DB, s store) {
		for n := range 20 {
			a, b := fmt.Sprint("a", n), fmt.Sprint("b", n)
			accounts := s.accounts(t, repository.Config{})
			endow(t, accounts, a, 30)
			second := open(t, s.direct).accounts(t, repository.Config{})
			cmd := repository.WithCommandID(fmt.Sprint("pay", n))
			var again error
			tear := db.Inject(dynamotest.Tear(func(context.Context) {
				ctx, cancel := context.WithTimeout(context.Background(), 60*time.Millisecond)
				defer cancel()
				var tx repository.Transaction
				from, to := second.AddTo(&tx, a), second.AddTo(&tx, b)
				again = tx.Execute(ctx, transfer(from, to, 30), cmd)
			}), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
			var tx repository.Transaction
			from, to := accounts.AddTo(&tx, a), accounts.AddTo(&tx, b)
			err := tx.Execute(t.Context(), transfer(from, to, 30), cmd)
			tear.Remove()
			require.NoError(t, err)
			require.NotErrorIs(t, again, ErrInsufficientFunds, "it was executed")
		}
	})
}

// The place after the last commit is free in such a history too.
func TestPackedARefusalDoesNotCountOnAHistoryThatARestoreHasTakenBack(t *testing.T) {
	t.Parallel()
	s := setupIn(t, journal.Packed)
	repo := s.accounts(t, repository.Config{Cache: 10})
	endow(t, repo, "a", 10)
	endow(t, repo, "b", 10)
	mustExecute(t, repo, "a", Withdraw(10)) // the backup does not have this event
	s.putBack(t, account("a"), 1, 2)

	var tx repository.Transaction
	a, b := repo.AddTo(&tx, "a"), repo.AddTo(&tx, "b")
	require.NoError(t, tx.Execute(t.Context(), transfer(a, b, 5)))
	assert.Equal(t, 5, a.Aggregate().State.Balance)
}

func TestAPanicInALoadReachesTheCaller(t *testing.T) {
	t.Parallel()
	_, s := onDynamotest(t)
	repo := s.accounts(t, repository.Config{})
	endow(t, repo, "a", 10)
	bad := newRepository(t, s, Accounts.WithCodec(panicking{aggregate.JSON}), repository.Config{})
	assert.Panics(t, func() { _, _ = bad.Load(t.Context(), "a") })
	assert.Panics(t, func() {
		var tx repository.Transaction
		bad.AddTo(&tx, "a")
		_ = tx.Execute(t.Context(), func() error { return nil })
	})
}

type panicking struct{ aggregate.Codec }

func (panicking) Unmarshal([]byte, any) error { panic("codec") }

func TestACommandOfOneAggregateIsNotRefusedForItsOwnEffectThatShowsInPart(t *testing.T) {
	eachInMemory(t, func(t *testing.T, db *dynamotest.DB, s store) {
		first, second := s.accounts(t, repository.Config{}), open(t, s.direct).accounts(t, repository.Config{})
		for n := range 15 {
			id, command := fmt.Sprint(n), repository.WithCommandID("withdraw")
			endow(t, first, id, 30)
			var again error
			tear := db.Inject(dynamotest.Tear(func(context.Context) {
				ctx, cancel := context.WithTimeout(context.Background(), 60*time.Millisecond)
				defer cancel()
				_, again = second.Execute(ctx, id, Withdraw(30), command)
			}), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
			_, err := first.Execute(t.Context(), id, Withdraw(30), command)
			tear.Remove()
			require.NoError(t, err)
			require.NotErrorIs(t, again, ErrInsufficientFunds)
		}
	})
}
