package subscriber_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/subscriber"
)

// setupEncrypted creates a journal of one shard, with or without encryption.
func setupEncrypted(t *testing.T) (plain, encrypted *journal.Journal, secret *encrypt.Encryption) {
	t.Helper()
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: 1}))
	require.NoError(t, encrypt.CreateTable(t.Context(), client, encrypt.KeysConfig{}))
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(client, wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	secret, err = encrypt.AESGCM(encrypt.Config{Keys: keys, AllowLateKeys: true})
	require.NoError(t, err)
	encrypted = testjournal.Open(t, client, journal.Config{Encodings: []journal.Encoding{secret}})
	return open(t, client), encrypted, secret
}

// notes stores the lines that are logged at Info.
type notes struct {
	watermill.NopLogger
	mu    sync.Mutex
	lines []string
}

func (n *notes) With(watermill.LogFields) watermill.LoggerAdapter { return n }

func (n *notes) Info(msg string, fields watermill.LogFields) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf("%s %v %v", msg, fields["aggregate_id"], fields["number"]))
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.lines...)
}

func TestEncryptedEventsAreDeliveredInPlain(t *testing.T) {
	t.Parallel()
	_, j, _ := setupEncrypted(t)
	write(t, j, "x", 0, 3)
	_, messages := subscribe(t, quick(j))
	assert.Equal(t, expect("x", 1, 3), receiveAll(t, messages, 3))
	write(t, j, "x", 3, 2)
	assert.Equal(t, expect("x", 4, 5), receiveAll(t, messages, 2))
}

func TestEventsWhoseKeyWasDestroyedArePassedOver(t *testing.T) {
	t.Parallel()
	plain, j, secret := setupEncrypted(t)
	write(t, plain, "x", 0, 2)
	write(t, j, "x", 2, 2)
	write(t, plain, "x", 4, 1)
	write(t, j, "y", 0, 2)
	require.NoError(t, secret.Destroy(t.Context(), account("x")))
	log := &notes{}
	sub, err := subscriber.NewSubscriber(quick(j), log)
	require.NoError(t, err)
	messages, err := sub.Subscribe(t.Context(), topic)
	require.NoError(t, err)

	got := receiveAll(t, messages, 5)

	assert.ElementsMatch(t, append(expect("y", 1, 2), "x/1", "x/2", "x/5"), got, "what was stored in plain is still there")
	assert.EqualValues(t, 2, sub.Stats().Destroyed)
	for _, number := range []int{3, 4} {
		assert.Contains(t, log.all(), fmt.Sprintf("Event was passed over because the key of its aggregate was destroyed x %d", number))
	}
	require.NoError(t, sub.Close())

	sub, messages = subscribe(t, quick(j))
	write(t, plain, "x", 5, 1)
	assert.Equal(t, expect("x", 6, 6), receiveAll(t, messages, 1), "the position is behind all of them")
	assert.Zero(t, sub.Stats().Destroyed)
}

func TestAnAggregateWithoutReadableEventsIsHandled(t *testing.T) {
	t.Parallel()
	_, j, secret := setupEncrypted(t)
	write(t, j, "x", 0, 150)
	require.NoError(t, secret.Destroy(t.Context(), account("x")))
	sub, messages := subscribe(t, quick(j))
	eventually(t, "all events are passed over and the position is stored", func() bool {
		stats := sub.Stats()
		return stats.Destroyed == 150 && stats.Positions > 0
	})
	require.NoError(t, sub.Close())
	_, open := <-messages
	assert.False(t, open)

	sub, messages = subscribe(t, quick(j))
	write(t, j, "y", 0, 1)
	receiveAll(t, messages, 1)
	assert.Zero(t, sub.Stats().Destroyed, "they are not looked at again")
}

// jammed is a store of keys that fails for one aggregate.
type jammed struct {
	journal.Encoding
	mu     sync.Mutex
	broken bool
}

func (d *jammed) Decode(ctx context.Context, at journal.Place, encoded []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken && at.Aggregate == (aggregate.ID{Type: topic, Value: "x"}) {
		return nil, errors.New("the key cannot be had now")
	}
	return d.Encoding.Decode(ctx, at, encoded)
}

func (d *jammed) mend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = false
}

func TestAMissingKeyBlocksItsAggregateAndNoOther(t *testing.T) {
	t.Parallel()
	_, j, secret := setupEncrypted(t)
	write(t, j, "x", 0, 2)
	write(t, j, "y", 0, 2)
	jam := &jammed{Encoding: secret, broken: true}
	config := j.Config()
	config.Encodings = []journal.Encoding{jam}
	jammedJournal := testjournal.Open(t, j.Client(), config)
	sub, messages := subscribe(t, quick(jammedJournal))

	assert.Equal(t, expect("y", 1, 2), receiveAll(t, messages, 2))
	eventually(t, "the failure is counted", func() bool { return sub.Stats().Failures > 0 })
	jam.mend()
	assert.Equal(t, expect("x", 1, 2), receiveAll(t, messages, 2), "nothing is skipped")
}
