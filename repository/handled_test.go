package repository_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/handled"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// handlerOf returns a context like that of a subscriber's message.
func handlerOf(ctx context.Context, id aggregate.ID, number uint64) context.Context {
	return context.WithValue(ctx, handled.Key{}, handled.Event{Table: "journal", Aggregate: id, Number: number})
}

type accounts = repository.Repository[Account]

// withdraw and withdrawTogether withdraw 30 by the two ways to execute a command.
func withdraw(ctx context.Context, r *accounts, id string, o ...repository.Option) error {
	_, err := r.Execute(ctx, id, Withdraw(30), o...)
	return err
}

func withdrawTogether(ctx context.Context, r *accounts, id string, o ...repository.Option) error {
	var tx repository.Transaction
	from := r.AddTo(&tx, id)
	return tx.Execute(ctx, func() error {
		if from.State.Balance < 30 {
			return ErrInsufficientFunds
		}
		from.Append(Withdrawn{30})
		return nil
	}, o...)
}

// An index shows the event before the aggregate shows the transaction that has written it.
func TestTheHandlerOfAnEventFindsItInItsAggregate(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]func(ctx context.Context, r *accounts, id string, number uint64) error{
		"Load": func(ctx context.Context, r *accounts, id string, number uint64) error {
			a, err := r.Load(ctx, id)
			assert.GreaterOrEqual(t, a.Version, number)
			return err
		},
		"LoadAtVersion": func(ctx context.Context, r *accounts, id string, number uint64) error {
			_, err := r.LoadAtVersion(ctx, id, number)
			return err
		},
		"Execute":     func(ctx context.Context, r *accounts, id string, _ uint64) error { return withdraw(ctx, r, id) },
		"Transaction": func(ctx context.Context, r *accounts, id string, _ uint64) error { return withdrawTogether(ctx, r, id) },
	} {
		t.Run(name, func(t *testing.T) {
			eachTorn(t, func(t *testing.T, r *accounts, id string, number uint64) {
				assert.NoError(t, handle(handlerOf(t.Context(), account(id), number), r, id, number))
			})
		})
	}
}

// An event can lead to commands on its aggregate through other aggregates, without the context of
// the event.
func TestACommandIsNotRefusedForAStateThatATransactionIsReplacing(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]func(ctx context.Context, r *accounts, id string, o ...repository.Option) error{
		"Execute": withdraw, "Transaction": withdrawTogether,
	} {
		t.Run(name, func(t *testing.T) {
			eachTorn(t, func(t *testing.T, r *accounts, id string, number uint64) {
				command := repository.WithCommandID(fmt.Sprint(id, "/", number))
				assert.NoError(t, handle(t.Context(), r, id, command))
				assert.ErrorIs(t, handle(t.Context(), r, id+"-none", repository.WithCommandID(id+"-none")), ErrInsufficientFunds)
			})
		})
	}
}

// eachTorn calls a handler of the deposit of 30 with the given number, which is the last event,
// while only a part of its transaction is visible. There are three cases: the deposit is the first
// event of its account; or the account was emptied after it was cached; or it was empty when it was
// cached, and has one more event since.
func eachTorn(t *testing.T, handle func(t *testing.T, r *accounts, id string, number uint64)) {
	t.Helper()
	eachInMemory(t, func(t *testing.T, db *dynamotest.DB, s store) {
		_, err := s.direct.CreateTable(t.Context(), &dynamodb.CreateTableInput{
			TableName: aws.String("aside"), BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		})
		require.NoError(t, err)
		transaction := repository.WithWrites(func(c repository.Commit) ([]types.TransactWriteItem, error) {
			row := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: fmt.Sprint(c.Aggregate, c.After)}}
			return []types.TransactWriteItem{{Put: &types.Put{TableName: aws.String("aside"), Item: row}}}, nil
		})
		writer, direct := s.accounts(t, repository.Config{}), open(t, s.direct)
		for _, cache := range []int{0, 10} {
			reader := direct.accounts(t, repository.Config{Cache: cache})
			for n := range 10 {
				first, emptied, empty := fmt.Sprintf("first-%d-%d", cache, n), fmt.Sprintf("emptied-%d-%d", cache, n), fmt.Sprintf("empty-%d-%d", cache, n)
				deposit := func(id string) {
					mustExecute(t, writer, id, Deposit(30), transaction)
				}
				testdb.WhileTorn(t, db, func() { deposit(first) }, func() { handle(t, reader, first, 1) })

				deposit(emptied)
				mustLoad(t, reader, emptied)
				require.NoError(t, withdraw(t.Context(), writer, emptied))
				testdb.WhileTorn(t, db, func() { deposit(emptied) }, func() { handle(t, reader, emptied, 3) })

				endow(t, writer, empty, 0)
				mustLoad(t, reader, empty)
				endow(t, writer, empty, 0)
				testdb.WhileTorn(t, db, func() { deposit(empty) }, func() { handle(t, reader, empty, 3) })
			}
		}
	})
}

// The packed layout stores large events of a commit in several items.
func TestACommandIsNotDecidedOnAPartOfACommit(t *testing.T) {
	eachInMemory(t, func(t *testing.T, db *dynamotest.DB, s store) {
		writer, reader := s.accounts(t, repository.Config{}), open(t, s.direct).accounts(t, repository.Config{Cache: 10})
		endow(t, writer, "a", 30)
		mustLoad(t, reader, "a")
		rival := db.Inject(dynamotest.Pause(func(context.Context) {
			large := Noted{strings.Repeat("x", 250<<10)}
			_, err := writer.Execute(t.Context(), "a", always[Account](Deposited{1000}, large, large, Withdrawn{1000}))
			assert.NoError(t, err)
		}), dynamotest.On("TransactGetItems"), dynamotest.Table(s.journal.Config().Tables.Journal), dynamotest.Times(1))
		var seen []int
		_, err := reader.Execute(t.Context(), "a", func(a Account) (aggregate.Events[Account], error) {
			seen = append(seen, a.Balance)
			return nil, ErrInsufficientFunds
		}, repository.WithCommandID("c"))
		require.ErrorIs(t, err, ErrInsufficientFunds)
		assert.Equal(t, 1, rival.Fired())
		assert.NotContains(t, seen, 1030)
	})
}

func TestARefusalDoesNotWaitForAnEndOfTheTransactionsOnABusyAggregate(t *testing.T) {
	eachInMemory(t, func(t *testing.T, db *dynamotest.DB, s store) {
		accounts, rival := s.accounts(t, repository.Config{}), open(t, s.direct).accounts(t, repository.Config{})
		endow(t, rival, "a", 30)
		heads := s.journal.Config().Tables.Snapshot
		if s.isPacked() {
			heads = s.journal.Config().Tables.Journal
		}
		busy := db.Inject(dynamotest.Conflict(), dynamotest.On("TransactGetItems"), dynamotest.Table(heads))
		var seen []int
		_, err := accounts.Execute(t.Context(), "a", func(a Account) (aggregate.Events[Account], error) {
			if seen = append(seen, a.Balance); len(seen) == 1 {
				endow(t, rival, "a", 30)
			}
			return nil, ErrInsufficientFunds
		}, repository.WithCommandID("c"))
		require.ErrorIs(t, err, ErrInsufficientFunds)
		assert.Equal(t, []int{30, 60}, seen)
		assert.Equal(t, 1, busy.Fired())
	})
}

func TestLoadsDoNotWaitForEventsOfOtherJournalsOrBeforeARestore(t *testing.T) {
	eachInMemory(t, func(t *testing.T, _ *dynamotest.DB, s store) {
		accounts := s.accounts(t, repository.Config{})
		endow(t, accounts, "a", 30)
		for _, ctx := range []context.Context{
			// The table was restored from a backup.
			handlerOf(t.Context(), account("a"), 1000),
			handlerOf(t.Context(), account("b"), 1000),
			context.WithValue(t.Context(), handled.Key{}, handled.Event{Table: "another", Aggregate: account("a"), Number: 1000}),
		} {
			a, err := accounts.Load(ctx, "a")
			require.NoError(t, err)
			assert.Equal(t, 30, a.State.Balance)
			_, err = accounts.LoadAtVersion(ctx, "a", a.Version)
			require.NoError(t, err)
		}
		_, err := accounts.Load(handlerOf(t.Context(), account("c"), 1000), "c")
		require.ErrorIs(t, err, journal.ErrNotFound)
	})
}
