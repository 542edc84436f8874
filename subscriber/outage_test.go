package subscriber_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber"
)

// hangingPublisher does not return until the test lets it.
type hangingPublisher struct{ entered, goOn chan struct{} }

func (p hangingPublisher) Publish(string, ...*message.Message) error {
	close(p.entered)
	<-p.goOn
	return nil
}

func (p hangingPublisher) Close() error { return nil }

func TestCloseDoesNotWaitForAPoisonQueueThatHangs(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 1)
	p := hangingPublisher{make(chan struct{}), make(chan struct{})}
	defer close(p.goOn)
	config := quick(j)
	config.CloseTimeout = 10 * time.Millisecond
	config.Failures = subscriber.PoisonQueue(1, p, "poison")
	sub, messages := subscribe(t, config)
	receive(t, messages).Nack()
	<-p.entered

	closes(t, sub)

	_, messages = subscribe(t, quick(j))
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1), "nobody knows whether it was published")
}

// The journal and the snapshots are restored from a backup, and the checkpoints are not. Events
// that are written then have numbers below the group's positions.
func TestPositionsBeyondARestoredJournalAreLogged(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		write(t, j, "x", 0, 3)
		config := quick(j)
		config.Timing.ReconcileInterval = 20 * time.Millisecond
		soon := subscriber.CursorInterval(10 * time.Millisecond)
		first, messages := subscribe(t, config, soon)
		receiveAll(t, messages, 3)
		eventually(t, "it has reconciled", func() bool { return progress(t, j).Reconciled.Unix() > 0 })
		require.NoError(t, first.Close())
		lose(t, client, "journal", "account-x-1", "account-x-2", "account-x-3")
		lose(t, client, "snapshot", "account-x-0")
		write(t, j, "x", 0, 2)

		log := &diary{}
		sub, err := subscriber.NewSubscriber(config, log)
		require.NoError(t, err)
		sub.Limit(soon)
		t.Cleanup(func() { require.NoError(t, sub.Close()) })
		_, err = sub.Subscribe(t.Context(), topic)
		require.NoError(t, err)

		const text = "position is beyond the journal"
		eventually(t, "it is logged", func() bool { return len(log.of(text)) > 0 })
		assert.Positive(t, sub.Stats().Beyond)
		lines := log.of(text)
		assert.Equal(t, "x", lines[0].fields["aggregate_id"])
		assert.EqualValues(t, 3, lines[0].fields["position"])
		assert.EqualValues(t, 2, lines[0].fields["version"])
		assert.Zero(t, sub.Stats().Delivered)
	})
}

// lose deletes items by their names.
func lose(t *testing.T, client *dynamodb.Client, table string, names ...string) {
	t.Helper()
	all, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	require.NoError(t, err)
	for _, it := range all.Items {
		if slices.Contains(names, nameOf(it)) {
			_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
				TableName: &table, Key: map[string]types.AttributeValue{"pkey": it["pkey"], "skey": it["skey"]},
			})
			require.NoError(t, err)
		}
	}
}

// A dead connection may never report an error.
func TestAReadThatHangsIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]struct {
		operation string
		table     string
	}{
		"of an event":                {"GetItem", "journal"},
		"of the progress of a shard": {"Query", "checkpoint"},
		"of the tail":                {"Query", "journal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				client := create(t, 1)
				j := open(t, client)
				write(t, j, "x", 0, 2)
				first, messages := subscribe(t, quick(j))
				receiveAll(t, messages, 1)
				require.NoError(t, first.Close())

				faulty := dynamotest.NewProxy(t, client)
				config := quick(open(t, faulty.Client(testdb.Once)))
				hang := dynamotest.Pause(func(ctx context.Context) { <-ctx.Done() })
				hung := faulty.Inject(hang, dynamotest.On(read.operation), dynamotest.Table(read.table), dynamotest.Times(1))
				_, messages = subscribe(t, config)

				assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
				// A commit wakes the subscriber, and it reads the event, unless the tail shows the
				// event first.
				for n := 2; read.operation == "GetItem" && hung.Fired() == 0 && n < 1000; n++ {
					write(t, config.Journal, "x", n, 1)
					assert.Equal(t, expect("x", n+1, n+1), receiveAll(t, messages, 1))
				}
				assert.Equal(t, 1, hung.Fired())
			})
		})
	}
}
