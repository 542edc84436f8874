package snippets

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
)

func TestAnEventWithoutATypeIsDropped(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.write(t.Context(), "42")
	nameless := message.NewMessage(watermill.NewUUID(), []byte(`{}`))
	nameless.Metadata.Set(publisher.AggregateIDKey, "42")
	require.NoError(t, b.publisher.Publish("account", nameless))
	_, err := b.accounts.Load(t.Context(), "42")
	var failed *repository.EventError
	require.ErrorAs(t, err, &failed)

	account, err := dropping(t.Context(), b.client).Load(t.Context(), "42")
	require.NoError(t, err)
	assert.Equal(t, 70, account.State.Balance)
}

func dropping(ctx context.Context, client *dynamodb.Client) *repository.Repository[Account] {
	j, err := journal.Open(ctx, client, journal.Config{
		EventType: func(*journal.Record) (string, error) { return "nameless", nil },
	})
	check(err)
	accounts, err := repository.New(j, definition.WithUpcasters(aggregate.Drop("nameless")), repository.Config{})
	check(err)
	return accounts
}
