package projection_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestAReadModelGoesOnAfterEventsWhoseKeyWasDestroyed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, Deposited{1})
	require.NoError(t, encrypt.CreateTable(t.Context(), w.client, encrypt.KeysConfig{}))
	wrapper, err := encrypt.LocalWrapper(bytes.Repeat([]byte{1}, encrypt.KeyBytes))
	require.NoError(t, err)
	keys, err := encrypt.NewKeys(w.client, wrapper, encrypt.KeysConfig{})
	require.NoError(t, err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys, AllowLateKeys: true})
	require.NoError(t, err)
	plain := w.j
	w.j = testjournal.Open(t, w.client, journal.Config{Encodings: []journal.Encoding{secret}})
	w.write("x", 1, Deposited{10}, Deposited{100})
	w.write("y", 0, Deposited{7})
	require.NoError(t, secret.Destroy(t.Context(), account("x")))
	encrypted := w.j
	w.j = plain
	w.write("x", 3, Deposited{1_000})
	w.j = encrypted

	w.consume(subscriber.Config{}, newProjection(t, w.client, sum).Handle)

	eventually(t, "what can be read takes effect, once, and what cannot holds up nothing", func() bool {
		return w.total("x") == 1_001 && w.total("y") == 7
	})
}
