package repository_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// request returns the options of a command with an id and a content.
func request(id, content string) []repository.Option {
	return []repository.Option{repository.WithCommandID(id), repository.WithCommandContent([]byte(content))}
}

func requireMismatch(t *testing.T, err error, commandID string) {
	t.Helper()
	var mismatch *repository.CommandMismatchError
	require.ErrorAs(t, err, &mismatch)
	assert.Equal(t, commandID, mismatch.CommandID)
	assert.NotEmpty(t, mismatch.CommitID)
	require.NotErrorIs(t, err, journal.ErrOutcomeUnknown)
	assert.NotErrorAs(t, err, new(*repository.RefusedError))
}

func TestACommandIDIsForOneContent(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		for name, config := range map[string]repository.Config{
			"plain": {}, "cached": {Cache: 10}, "with snapshots": {Snapshots: repository.Every(1)},
		} {
			repo, other := s.accounts(t, config), open(t, s.client).accounts(t, config)
			first := mustExecute(t, repo, name, Deposit(5), request("pay", "5")...)
			for _, again := range []*repository.Repository[Account]{repo, other} {
				a := mustExecute(t, again, name, Deposit(5), request("pay", "5")...)
				assert.True(t, a.Repeated, name)
				assert.True(t, mustExecute(t, again, name, Deposit(5), repository.WithCommandID("pay")).Repeated, "it says nothing about the content")

				_, err := again.Execute(t.Context(), name, Deposit(6), request("pay", "6")...)
				requireMismatch(t, err, "pay")
				_, err = again.Execute(t.Context(), name, Withdraw(1000), request("pay", "-1000")...)
				requireMismatch(t, err, "pay")
				_, err = again.Execute(t.Context(), name, Deposit(6), append(request("pay", "6"), repository.WithExpectedVersion(0))...)
				requireMismatch(t, err, "pay")
				_, err = again.Save(t.Context(), first, deposits(1), request("pay", "6")...)
				requireMismatch(t, err, "pay")
				_, err = again.Save(t.Context(), first, deposits(1), request("pay", "5")...)
				require.ErrorAs(t, err, new(*journal.DuplicateCommandError))
			}
			assert.EqualValues(t, 1, mustLoad(t, repo, name).Version)
		}
	})
}

func TestACommandWithoutAContentIsOfAnyContent(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{})
		mustExecute(t, repo, "42", Deposit(5), repository.WithCommandID("pay"))

		assert.True(t, mustExecute(t, repo, "42", Deposit(6), request("pay", "6")...).Repeated)
	})
}

// In the packed layout their ids are in placeholders, commits, snapshots, and guards.
func TestOldCommandsAreForOneContentToo(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		const commands = 300
		repo := s.accounts(t, repository.Config{Cache: 10, Snapshots: repository.Every(50)})
		for n := range commands {
			decide := Deposit(1)
			if n%3 == 0 {
				decide = always[Account]() // nothing to do
			}
			mustExecute(t, repo, "42", decide, request(fmt.Sprint(n), "1")...)
		}
		other := open(t, s.client).accounts(t, repository.Config{})
		for n := 0; n < commands; n += 13 {
			_, err := other.Execute(t.Context(), "42", Deposit(2), request(fmt.Sprint(n), "2")...)
			requireMismatch(t, err, fmt.Sprint(n))
			assert.True(t, mustExecute(t, other, "42", Deposit(1), request(fmt.Sprint(n), "1")...).Repeated)
		}
	})
}

func TestACommandOfATransactionIsForOneContent(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		repo := s.accounts(t, repository.Config{})
		transfer := func(amount int, content string) error {
			var tx repository.Transaction
			from, to := repo.AddTo(&tx, "a"), repo.AddTo(&tx, "b")
			return tx.Execute(t.Context(), func() error {
				if from.State.Balance < 0 {
					return ErrInsufficientFunds
				}
				from.Append(Withdrawn{amount})
				to.Append(Deposited{amount})
				return nil
			}, request("transfer", content)...)
		}
		require.NoError(t, transfer(5, "5"))
		require.NoError(t, transfer(5, "5"), "it is repeated")

		requireMismatch(t, transfer(6, "6"), "transfer")
		assert.Equal(t, 5, mustLoad(t, repo, "b").State.Balance)
	})
}

// Another process executes the command while the reply to a commit is lost.
func TestAnUnknownOutcomeIsNotThatOfAnotherContent(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		other := open(t, s.client).accounts(t, repository.Config{})
		taken := s.proxy.Inject(dynamotest.Pause(func(context.Context) {
			mustExecute(t, other, "42", Deposit(5), request("pay", "5")...)
		}), dynamotest.On("PutItem", "TransactWriteItems"), dynamotest.Times(1))
		defer taken.Remove()

		_, err := s.accounts(t, repository.Config{}).Execute(t.Context(), "42", Deposit(6), request("pay", "6")...)

		requireMismatch(t, err, "pay")
		assert.Equal(t, 5, mustLoad(t, other, "42").State.Balance)
	})
}

func TestAContentThatCannotBeComparedIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	repo := s.accounts(t, repository.Config{})
	_, err := repo.Execute(t.Context(), "42", Deposit(5), repository.WithCommandContent(nil))
	require.ErrorIs(t, err, journal.ErrInvalidCommit)
	require.ErrorContains(t, err, "needs WithCommandID")

	n := 0
	named := s.open(t, journal.Config{NewID: func() string { n++; return fmt.Sprint("commit-", n) }}).accounts(t, repository.Config{})
	_, err = named.Execute(t.Context(), "42", Deposit(5), request("pay", "5")...)
	var invalid *journal.ConfigError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "NewID", invalid.Field)
	mustExecute(t, named, "42", Deposit(5), repository.WithCommandID("pay"))
}
