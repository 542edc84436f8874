package interop_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestAGroupGetsTheEventsOfBothKindsOfWritersInOrder(t *testing.T) {
	client := setup(t)
	createTables(t, client)
	ours, peer := open(t, client, peerConfig, repository.Every(1)), startPeer(t, client, peerConfig, nil)
	peer.open("1", "Ann")
	peer.deposit("1", 1, true)
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: ours.journal, ConsumerGroup: "group",
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sub.Close()) })
	messages, err := sub.Subscribe(t.Context(), "account")
	require.NoError(t, err)
	expect := func(number uint64, name string) {
		t.Helper()
		select {
		case msg := <-messages:
			_, got, _ := subscriber.AggregateFromContext(msg.Context())
			require.Equal(t, number, got)
			require.Equal(t, name, msg.Metadata.Get(subscriber.NameKey))
			msg.Ack()
		case <-t.Context().Done():
			t.Fatal("no message")
		}
	}
	expect(1, "AccountOpened")
	expect(2, "AccountDeposited")

	peer.deposit("1", 2, true) // the time of the event hides it
	ours.execute("1", Deposited{3})
	expect(3, "AccountDeposited")
	expect(4, "AccountDeposited")
}
