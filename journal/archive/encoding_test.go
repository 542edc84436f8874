package archive_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/archive"
	"github.com/millrace-dev/millrace/journal/encrypt"
)

func TestWhatIsEncryptedStaysSoInAnArchiveAndIsLostWithItsKey(t *testing.T) {
	t.Parallel()
	client := testdb.Client(t)
	require.NoError(t, encrypt.CreateTable(t.Context(), client, encrypt.KeysConfig{}))
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(client, wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	require.NoError(t, err)
	config := journal.Config{Encodings: []journal.Encoding{secret}}
	from, to := setup(t, client, config), setup(t, client, config)
	for _, id := range []aggregate.ID{account("kept"), account("forgotten")} {
		testjournal.Append(t, from.Journal, storage.Commit{
			Aggregate: id, Events: []storage.Event{{Type: "said", Payload: []byte("a secret")}},
			Snapshot: &journal.Snapshot{Number: 1, Payload: []byte("the state of a secret"), Schema: 3},
		})
	}

	text := from.export(t)
	require.NoError(t, secret.Destroy(t.Context(), account("forgotten")))
	to.imports(t, text)

	assert.NotContains(t, string(text), "YSBzZWNyZXQ", "neither plain nor in base64")
	head, err := to.Head(t.Context(), account("kept"))
	require.NoError(t, err)
	assert.Equal(t, &journal.Snapshot{Number: 1, Payload: []byte("the state of a secret"), Schema: 3}, head.Snapshot)
	for r, err := range to.Events(t.Context(), account("kept"), 1, 1) {
		require.NoError(t, err)
		assert.Equal(t, "a secret", string(r.Payload))
	}
	_, err = to.Head(t.Context(), account("forgotten"))
	require.ErrorIs(t, err, journal.ErrKeyDestroyed)
	report, err := archive.Compare(t.Context(), to.Journal, bytes.NewReader(text), archive.VerifyOptions{})
	require.NoError(t, err, "that needs no key")
	require.NoError(t, report.Err())
}
