package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/repository"
)

// A world in which the account "deleted" was deleted, and the key of "forgotten" was destroyed.
func setupGone(t *testing.T) world {
	t.Helper()
	w := world{db: dynamotest.New(t)}
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	require.NoError(t, err)
	require.NoError(t, encrypt.CreateTable(t.Context(), w.db.Client(), encrypt.KeysConfig{}))
	keys, err := encrypt.NewKeys(w.db.Client(), wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	require.NoError(t, err)
	w.journal = testjournal.New(t, w.db.Client(), journal.Config{Shards: 1, Layout: journal.Packed, Encodings: []journal.Encoding{secret}})
	w.accounts = testjournal.Repository(t, w.journal, accounts, repository.Config{})
	for _, id := range []string{"deleted", "forgotten", "other"} {
		require.NoError(t, deliver(command.Handler("deposit", w.accounts, route), message.NewMessage("first "+id, nil), deposit{id, 10}))
	}
	require.NoError(t, w.accounts.Delete(t.Context(), "deleted", 1, journal.RemoveOptions{}))
	require.NoError(t, secret.Destroy(t.Context(), aggregate.ID{Type: "account", Value: "forgotten"}))
	return w
}

func TestACommandForAnAggregateThatIsGoneIsRefused(t *testing.T) {
	t.Parallel()
	w := setupGone(t)
	var refused []*repository.RefusedError
	one := command.Handler("deposit", w.accounts, route, command.OnRefused(func(_ context.Context, _ *deposit, r *repository.RefusedError) error {
		refused = append(refused, r)
		return nil
	}))
	several := command.TransactionHandler("transfer", transferOf(w.accounts), command.OnRefused(
		func(_ context.Context, _ *transfer, r *repository.RefusedError) error {
			refused = append(refused, r)
			return nil
		}))
	for id, is := range map[string]func(error) bool{
		"deleted":   func(err error) bool { return errors.As(err, new(*journal.DeletedError)) },
		"forgotten": func(err error) bool { return errors.Is(err, journal.ErrKeyDestroyed) },
	} {
		refused = nil
		msg := message.NewMessage("to "+id, nil)
		require.NoError(t, deliver(one, msg, deposit{id, 1}))
		require.NoError(t, deliver(several, msg, transfer{id, "other", 1}))
		require.NoError(t, deliver(several, msg, transfer{"other", id, 1}))
		require.Len(t, refused, 3, id)
		for _, r := range refused {
			assert.Equal(t, aggregate.ID{Type: "account", Value: id}, r.ID)
			assert.True(t, is(r), "%v", r)
		}

		refused = nil
		require.NoError(t, deliver(one, message.NewMessage("first "+id, nil), deposit{id, 10}))
		assert.Empty(t, refused, "it was executed before")
	}
	log := watermill.NewCaptureLogger()
	h := command.Handler("deposit", w.accounts, route, command.WithLogger[deposit](log))
	require.NoError(t, deliver(h, message.NewMessage("m", nil), deposit{"forgotten", 1}))
	require.Len(t, log.Captured()[watermill.InfoLogLevel], 1)
	assert.Contains(t, fmt.Sprint(log.Captured()[watermill.InfoLogLevel][0].Fields), "forgotten")
	assert.Len(t, w.stored(t, "other"), 1)
}

// A function that options call may load other aggregates.
func TestACommandIsNotRefusedBecauseAnotherAggregateIsGone(t *testing.T) {
	t.Parallel()
	w := setupGone(t)
	for _, gone := range []string{"deleted", "forgotten"} {
		loads := func() []repository.Option {
			return []repository.Option{repository.WithWrites(func(repository.Commit) ([]types.TransactWriteItem, error) {
				_, err := w.accounts.Load(t.Context(), gone)
				return nil, err
			})}
		}
		for _, err := range []error{
			deliver(command.Handler("deposit", w.accounts, route, command.WithRepositoryOptions(func(*deposit) []repository.Option { return loads() })),
				message.NewMessage("m", nil), deposit{"other", 1}),
			deliver(command.TransactionHandler("transfer", transferOf(w.accounts), command.WithRepositoryOptions(func(*transfer) []repository.Option { return loads() })),
				message.NewMessage("m", nil), transfer{"other", "new", 1}),
		} {
			assert.Error(t, err, gone)
		}
	}
}

func TestAnotherContentWithTheIDOfACommandIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var refused []error
	h := command.Handler("deposit", w.accounts, route,
		command.WithRepositoryOptions(func(d *deposit) []repository.Option {
			return []repository.Option{repository.WithCommandContent([]byte(fmt.Sprint(d.Amount)))}
		}),
		command.OnRefused(func(_ context.Context, _ *deposit, r *repository.RefusedError) error {
			refused = append(refused, r)
			return nil
		}))
	for _, amount := range []int{1, 1, 2} {
		require.NoError(t, deliver[deposit](h, message.NewMessage("m", nil), deposit{"a", amount}))
	}
	require.Len(t, refused, 1)
	require.ErrorAs(t, refused[0], new(*repository.CommandMismatchError))
	assert.Len(t, w.stored(t, "a"), 1)
}
