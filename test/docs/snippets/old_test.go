package snippets

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

// storeOld writes an event of an old type.
func storeOld(t *testing.T, j *journal.Journal) {
	t.Helper()
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	require.NoError(t, err)
	old := message.NewMessage(watermill.NewUUID(), []byte(`{"Cents":500}`))
	old.Metadata.Set(publisher.AggregateIDKey, "42")
	old.Metadata.Set(publisher.NameKey, "account.deposited.v0")
	require.NoError(t, p.Publish("account", old))
	require.NoError(t, p.Close())
}
