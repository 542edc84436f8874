package docs

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
)

type balance struct{ Cents int }

type deposited struct{ Cents int }

func (deposited) EventType() string  { return "balance.deposited.v1" }
func (e deposited) Apply(b *balance) { b.Cents += e.Cents }

func TestAnEventWithoutATypeCanBeDropped(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Packed, Shards: 1}))
	definition := aggregate.Define[balance]("balance", deposited{})
	load := func(config journal.Config, definition aggregate.Definition[balance]) (repository.Aggregate[balance], error) {
		j := testjournal.Open(t, client, config)
		accounts := testjournal.Repository(t, j, definition, repository.Config{})
		return accounts.Load(t.Context(), "42")
	}
	publish(t, client, "balance.deposited.v1", "")

	_, err := load(journal.Config{}, definition)
	require.ErrorAs(t, err, new(*repository.EventError))

	named := journal.Config{EventType: func(*journal.Record) (string, error) { return "nameless", nil }}
	loaded, err := load(named, definition.WithUpcasters(aggregate.Drop("nameless")))
	require.NoError(t, err)
	assert.Equal(t, balance{Cents: 5}, loaded.State)
	assert.EqualValues(t, 2, loaded.Version)
}

// publish writes an event for each type. An empty type is none.
func publish(t *testing.T, client journal.Client, types ...string) {
	t.Helper()
	j := testjournal.Open(t, client, journal.Config{})
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	require.NoError(t, err)
	for _, eventType := range types {
		msg := message.NewMessage(watermill.NewUUID(), []byte(`{"Cents":5}`))
		msg.Metadata.Set(publisher.AggregateIDKey, "42")
		if eventType != "" {
			msg.Metadata.Set(publisher.NameKey, eventType)
		}
		require.NoError(t, p.Publish("balance", msg))
	}
	require.NoError(t, p.Close())
}
