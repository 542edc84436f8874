package repository_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/repository"
)

// encrypted returns a journal whose payloads are encrypted.
func encrypted(t *testing.T, client journal.Client) (*journal.Journal, *encrypt.Encryption) {
	t.Helper()
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(client, wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	require.NoError(t, err)
	return testjournal.Open(t, client, journal.Config{Encodings: []journal.Encoding{secret}}), secret
}

func TestACommandThatWasExecutedBeforeItsKeyWasDestroyedIsRepeated(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		client := testdb.Client(t)
		require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1, Layout: layout}))
		require.NoError(t, encrypt.CreateTable(t.Context(), client, encrypt.KeysConfig{}))
		j, secret := encrypted(t, client)
		first := testjournal.Repository(t, j, Accounts, repository.Config{Cache: 10})
		endow(t, first, "forgotten", 10)
		endow(t, first, "other", 10)
		mustExecute(t, first, "forgotten", Withdraw(1), repository.WithCommandID("withdraw"))
		pay := func(r *repository.Repository[Account], commandID string) ([]repository.Result, error) {
			var tx repository.Transaction
			from, to := r.AddTo(&tx, "forgotten"), r.AddTo(&tx, "other")
			err := tx.Execute(t.Context(), transfer(from, to, 1), repository.WithCommandID(commandID))
			return tx.Results(), err
		}
		_, err := pay(first, "transfer")
		require.NoError(t, err)

		require.NoError(t, secret.Destroy(t.Context(), account("forgotten")))

		again, _ := encrypted(t, client)
		for name, r := range map[string]*repository.Repository[Account]{
			"cached": first, "loaded": testjournal.Repository(t, again, Accounts, repository.Config{}),
		} {
			assert.True(t, mustExecute(t, r, "forgotten", Withdraw(1), repository.WithCommandID("withdraw")).Repeated, name)
			results, err := pay(r, "transfer")
			require.NoError(t, err, name)
			for _, result := range results {
				assert.True(t, result.Repeated, name)
			}

			_, err = r.Execute(t.Context(), "forgotten", Withdraw(1), repository.WithCommandID("new"))
			require.ErrorIs(t, err, journal.ErrKeyDestroyed, name)
			_, err = pay(r, "new")
			require.ErrorIs(t, err, journal.ErrKeyDestroyed, name)
		}
	})
}
