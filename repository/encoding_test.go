package repository_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/compress"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/repository"
)

// setupEncoded returns a store that compresses and encrypts.
func setupEncoded(t *testing.T, layout journal.Layout) (store, *encrypt.Encryption) {
	t.Helper()
	client := testdb.Client(t)
	createEncoded(t, client, layout)
	return openEncoded(t, client)
}

func createEncoded(t *testing.T, client *dynamodb.Client, layout journal.Layout) {
	t.Helper()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 4, Layout: layout}))
	require.NoError(t, encrypt.CreateTable(t.Context(), client, encrypt.KeysConfig{}))
}

// openEncoded opens it as another process does, with its own cache of keys.
func openEncoded(t *testing.T, client *dynamodb.Client) (store, *encrypt.Encryption) {
	t.Helper()
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(client, wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	require.NoError(t, err)
	gzip, err := compress.Gzip(compress.Config{})
	require.NoError(t, err)
	return through(t, client).open(t, journal.Config{Encodings: []journal.Encoding{gzip, secret}}), secret
}

func TestAnEncryptedAggregateIsLoadedFromItsSnapshotAndEvents(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		s, _ := setupEncoded(t, layout)
		note := Noted{Text: strings.Repeat("a long text ", 200)}
		for _, policy := range []repository.SnapshotPolicy{repository.Every(3), repository.Never} {
			accounts := s.accounts(t, repository.Config{Snapshots: policy})
			for range 5 {
				mustExecute(t, accounts, "42", Deposit(10))
			}
			mustExecute(t, accounts, "42", always[Account](note))
		}

		a := mustLoad(t, s.accounts(t, repository.Config{}), "42")
		assert.Equal(t, 100, a.State.Balance)
		assert.EqualValues(t, 12, a.Version)
		for r, err := range s.journal.Internal().Raw().Events(t.Context(), a.ID, 6, 7) {
			require.NoError(t, err)
			assert.Equal(t, map[uint64]string{6: "gzip,aes-gcm", 7: "aes-gcm"}[r.Number], r.Encoding)
		}
	})
}

func TestAnAggregateWhoseKeyWasDestroyedCanBeNeitherLoadedNorChanged(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]repository.Config{
		"with a snapshot": {Snapshots: repository.Every(1)},
		"from its events": {Snapshots: repository.Never, IgnoreSnapshots: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, layout := range layouts {
				s, secret := setupEncoded(t, layout)
				accounts := s.accounts(t, config)
				loaded := mustExecute(t, accounts, "42", Deposit(10))
				mustExecute(t, accounts, "43", Deposit(10))
				require.NoError(t, secret.Destroy(t.Context(), account("42")))

				_, err := accounts.Load(t.Context(), "42")
				require.ErrorIs(t, err, journal.ErrKeyDestroyed)
				require.ErrorContains(t, err, "account-42")
				_, err = accounts.Execute(t.Context(), "42", func(Account) (aggregate.Events[Account], error) {
					t.Error("there is nothing to decide upon")
					return nil, nil
				})
				require.ErrorIs(t, err, journal.ErrKeyDestroyed)
				_, err = accounts.Save(t.Context(), loaded, Events{Deposited{1}})
				require.ErrorIs(t, err, journal.ErrKeyDestroyed)

				head, err := s.journal.Internal().Raw().Head(t.Context(), account("42"))
				require.NoError(t, err)
				assert.EqualValues(t, 1, head.Version, "nothing was written")
				mustLoad(t, accounts, "43")
			}
		})
	}
}

func TestNothingEncryptedIsLostInAStorm(t *testing.T) {
	t.Parallel()
	for seed := range testdb.Seeds(6) {
		layout := layouts[seed%2]
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			db := dynamotest.New(t, dynamotest.WithSeed(seed))
			createEncoded(t, db.Client(), layout)
			var processes []*repository.Repository[Account]
			for range 3 {
				s, _ := openEncoded(t, db.Client())
				processes = append(processes, s.accounts(t, repository.Config{Snapshots: repository.Every(2)}))
			}
			calm := db.Storm(0.1)
			var acknowledged, unknown [3]atomic.Int64
			var wait sync.WaitGroup
			for _, accounts := range processes {
				wait.Add(1)
				go func() {
					defer wait.Done()
					for i := range 12 {
						_, err := accounts.Execute(t.Context(), fmt.Sprint(i%3), Deposit(1))
						switch {
						case err == nil:
							acknowledged[i%3].Add(1)
						case errors.Is(err, journal.ErrOutcomeUnknown):
							unknown[i%3].Add(1)
						}
					}
				}()
			}
			wait.Wait()
			calm()
			for i := range 3 {
				// The storm may have let no commit through.
				a, err := processes[0].Execute(t.Context(), fmt.Sprint(i), Deposit(0))
				require.NoError(t, err, "all have used one key")
				assert.GreaterOrEqual(t, int64(a.State.Balance), acknowledged[i].Load())
				assert.LessOrEqual(t, int64(a.State.Balance), acknowledged[i].Load()+unknown[i].Load())
			}
		})
	}
}
