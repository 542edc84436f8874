package repository_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestACommandWithAnIDTakesEffectOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for name, config := range map[string]repository.Config{"without a cache": {}, "with a cache": {Cache: 10}} {
		repo := s.accounts(t, config)
		first := mustExecute(t, repo, name, Deposit(5), repository.WithCommandID("pay-1"))
		assert.False(t, first.Repeated)

		for range 2 {
			again, err := open(t, s.client).accounts(t, config).Execute(t.Context(), name, Deposit(5), repository.WithCommandID("pay-1"))
			require.NoError(t, err, name)
			assert.True(t, again.Repeated)
			assert.Equal(t, 5, again.State.Balance)
		}

		other := mustExecute(t, repo, name, Deposit(5), repository.WithCommandID("pay-2"))
		assert.False(t, other.Repeated)
		assert.Equal(t, 10, other.State.Balance)
		next := mustExecute(t, repo, name, Deposit(1))
		assert.False(t, next.Repeated)
	}
	a := mustExecute(t, s.accounts(t, repository.Config{}), "other", Deposit(5), repository.WithCommandID("pay-1"))
	assert.False(t, a.Repeated, "it is another command on another aggregate")
}

func TestARefusedCommandMayBeExecutedAgain(t *testing.T) {
	t.Parallel()
	repo := setup(t).accounts(t, repository.Config{})
	_, err := repo.Execute(t.Context(), "42", Withdraw(5), repository.WithCommandID("w"))
	require.ErrorIs(t, err, ErrInsufficientFunds)
	mustExecute(t, repo, "42", Deposit(5))

	a := mustExecute(t, repo, "42", Withdraw(5), repository.WithCommandID("w"))
	assert.False(t, a.Repeated)
	assert.Equal(t, 0, a.State.Balance)
}

func TestACommandWithoutEventsIsRememberedToo(t *testing.T) {
	t.Parallel()
	repo := setup(t).accounts(t, repository.Config{})
	ifEmpty := func(a Account) (aggregate.Events[Account], error) {
		if a.Balance > 0 {
			return nil, nil
		}
		return aggregate.Events[Account]{Deposited{1}}, nil
	}
	mustExecute(t, repo, "42", Deposit(5))
	a := mustExecute(t, repo, "42", ifEmpty, repository.WithCommandID("top up"))
	assert.False(t, a.Repeated)
	assert.EqualValues(t, 1, a.Version)
	mustExecute(t, repo, "42", Withdraw(5))

	a = mustExecute(t, repo, "42", ifEmpty, repository.WithCommandID("top up"))
	assert.True(t, a.Repeated)
	assert.Equal(t, 0, a.State.Balance, "it decided that there was nothing to do, once and for all")
}

func TestACommandIsExecutedAgainAfterItsOutcomeWasUnknown(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault   func(func(context.Context)) dynamotest.Fault
		written bool
	}{
		"it was not written": {dynamotest.Pause, false},
		"it was written":     {dynamotest.PauseReply, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			repo := s.accounts(t, repository.Config{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ends := s.proxy.Inject(test.fault(func(context.Context) { cancel() }), dynamotest.On("TransactWriteItems"))
			_, err := repo.Execute(ctx, "42", Deposit(5), repository.WithCommandID("pay"))
			var unknown *journal.OutcomeUnknownError
			require.ErrorAs(t, err, &unknown)
			ends.Remove()
			written, err := s.journal.Resolve(t.Context(), &journal.OutcomeUnknownError{
				ID: unknown.ID, First: unknown.First, CommitID: unknown.CommitID, CommandID: "pay",
			})
			require.NoError(t, err)
			assert.Equal(t, test.written, written)

			a := mustExecute(t, repo, "42", Deposit(5), repository.WithCommandID("pay"))
			assert.Equal(t, test.written, a.Repeated)
			assert.Equal(t, 5, a.State.Balance)
			assert.Len(t, s.records(t, a.ID), 1)
		})
	}
}

// The decision's error names another aggregate, which knows a command of the same id.
func TestADeletionInTheErrorOfADecisionIsARefusal(t *testing.T) {
	t.Parallel()
	repo := setup(t).accounts(t, repository.Config{})
	a := mustExecute(t, repo, "2", Deposit(5), repository.WithCommandID("m1"))
	require.NoError(t, repo.Delete(t.Context(), "2", a.Version, journal.RemoveOptions{}))

	a, err := repo.Execute(t.Context(), "3", func(Account) (Events, error) {
		_, err := repo.Load(t.Context(), "2")
		return nil, err
	}, repository.WithCommandID("m1"))

	var deleted *journal.DeletedError
	require.ErrorAs(t, err, &deleted)
	assert.Equal(t, account("2"), deleted.ID)
	assert.Zero(t, a)
}

func TestACommandWithAnEmptyIDIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	_, err := repo.Execute(t.Context(), "42", Deposit(5), repository.WithCommandID(""))
	require.ErrorIs(t, err, journal.ErrInvalidCommit)
	_, err = repo.Load(t.Context(), "42")
	require.ErrorIs(t, err, journal.ErrNotFound)
}

func TestErrorsOfTheCallersFunctionSayNothingOfTheCommit(t *testing.T) {
	t.Parallel()
	for name, cached := range map[string]int{"without a cache": 0, "with a cache": 10} {
		repo := setup(t).accounts(t, repository.Config{Cache: cached})
		mustExecute(t, repo, "42", Deposit(5))
		for _, given := range []error{
			&journal.ConflictError{ID: account("42"), Expected: 1, Actual: 7},
			&journal.DuplicateCommandError{ID: account("other")},
			&journal.DeletedError{ID: account("other")},
		} {
			calls := 0
			_, err := repo.Execute(t.Context(), "42", Deposit(5), repository.WithCommandID("c"), repository.WithWrites(
				func(repository.Commit) ([]types.TransactWriteItem, error) {
					calls++
					return nil, given
				}))
			require.ErrorIs(t, err, given, name)
			assert.Equal(t, 1, calls, name)
		}
	}
}

func TestACommandSavedTwiceIsRefusedTheSecondTime(t *testing.T) {
	t.Parallel()
	repo := setup(t).accounts(t, repository.Config{})
	a, err := repo.NewAggregate("42")
	require.NoError(t, err)
	a = mustSave(t, repo, a, deposits(2), repository.WithCommandID("import"))

	_, err = repo.Save(t.Context(), a, deposits(2), repository.WithCommandID("import"))

	var duplicate *journal.DuplicateCommandError
	require.ErrorAs(t, err, &duplicate)
	assert.Equal(t, "import", duplicate.CommandID)
	assert.EqualValues(t, 1, duplicate.First)
	assert.EqualValues(t, 2, duplicate.Version)
}

// Save loads an aggregate without a proof, and one whose state it must replay for a snapshot.
func TestACommandSavedTwiceIsADuplicateAlsoWhereSaveLoadsFirst(t *testing.T) {
	t.Parallel()
	for name, config := range eachCommit {
		for which, given := range map[string]func(repository.Aggregate[Basket]) repository.Aggregate[Basket]{
			"made by hand": func(a repository.Aggregate[Basket]) repository.Aggregate[Basket] {
				return repository.Aggregate[Basket]{ID: a.ID, Version: a.Version}
			},
			"returned by LoadAtVersion": func(a repository.Aggregate[Basket]) repository.Aggregate[Basket] { return a },
		} {
			for end, deleted := range map[string]bool{"": false, ", and deleted": true} {
				t.Run(name+", "+which+end, func(t *testing.T) {
					t.Parallel()
					s := setup(t)
					repo := s.baskets(t, config)
					for range 2 { // the second one stores no snapshot
						mustExecute(t, s.baskets(t, repository.Config{}), "42", always[Basket](Added{"pen", 1}))
					}
					a := mustLoadAtVersion(t, repo, "42", 2)
					one := aggregate.Events[Basket]{Added{"pen", 1}}
					saved := mustSave(t, repo, given(a), one, repository.WithCommandID("c"))
					if deleted {
						require.NoError(t, repo.Delete(t.Context(), "42", saved.Version, journal.RemoveOptions{}))
					}

					_, err := repo.Save(t.Context(), given(a), one, repository.WithCommandID("c"))
					var duplicate *journal.DuplicateCommandError
					require.ErrorAs(t, err, &duplicate)
					duplicate.CommitID = ""
					assert.Equal(t, journal.DuplicateCommandError{ID: basket("42"), CommandID: "c", First: 3, Version: 3}, *duplicate)

					_, err = repo.Save(t.Context(), given(a), one, repository.WithCommandID("other"))
					if deleted {
						require.ErrorAs(t, err, new(*journal.DeletedError), "another command")
					} else {
						require.ErrorIs(t, err, journal.ErrConflict, "another command")
					}
				})
			}
		}
	}
}

// emails creates a table that makes addresses unique.
func (s store) emails(t *testing.T) {
	t.Helper()
	_, err := s.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("emails"),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("address"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("address"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
}

// writes adds actions to a commit that do not depend on it.
func writes(actions ...types.TransactWriteItem) repository.Option {
	return repository.WithWrites(func(repository.Commit) ([]types.TransactWriteItem, error) { return actions, nil })
}

func claim(address string) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName:           aws.String("emails"),
		Item:                map[string]types.AttributeValue{"address": &types.AttributeValueMemberS{Value: address}},
		ConditionExpression: aws.String("attribute_not_exists(address)"),
	}}
}

func TestWritesOfTheCallerCommitWithTheEventsOrNotAtAll(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.emails(t)
	repo := s.accounts(t, repository.Config{})
	mustExecute(t, repo, "1", Deposit(1), writes(claim("a@example.org")))

	_, err := repo.Execute(t.Context(), "2", Deposit(1), writes(claim("b@example.org"), claim("a@example.org")))

	var refused *journal.WriteRefusedError
	require.ErrorAs(t, err, new(*journal.WriteRefusedError))
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 1, refused.Index)
	assert.Equal(t, "emails", refused.Table)
	_, err = repo.Load(t.Context(), "2")
	require.ErrorIs(t, err, journal.ErrNotFound)
	_, err = repo.Execute(t.Context(), "2", Deposit(1), writes(claim("b@example.org")))
	require.NoError(t, err, "the first of the two was not claimed either")
}

func TestWritesMayFollowFromTheEvents(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.emails(t)
	repo := s.accounts(t, repository.Config{})
	outbox := func(c repository.Commit) (writes []types.TransactWriteItem, err error) {
		for _, e := range c.Events {
			writes = append(writes, claim(fmt.Sprintf("%s %d %s", e.Aggregate, e.Number, e.Type)))
		}
		return writes, nil
	}
	mustExecute(t, repo, "1", always(deposits(2)...), repository.WithWrites(outbox))
	mustExecute(t, repo, "1", always[Account](Withdrawn{1}), repository.WithWrites(outbox))

	out, err := s.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("emails")})
	require.NoError(t, err)
	rows := []string{}
	for _, it := range out.Items {
		rows = append(rows, it["address"].(*types.AttributeValueMemberS).Value)
	}
	assert.ElementsMatch(t, []string{
		"account-1 1 account.deposited.v1", "account-1 2 account.deposited.v1", "account-1 3 account.withdrawn.v1",
	}, rows)

	broken := errors.New("no room in the outbox")
	_, err = repo.Execute(t.Context(), "1", Deposit(1), repository.WithWrites(func(repository.Commit) ([]types.TransactWriteItem, error) {
		return nil, broken
	}))
	require.ErrorIs(t, err, broken)
	a := mustLoad(t, repo, "1")
	assert.EqualValues(t, 3, a.Version)
}
