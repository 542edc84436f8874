package compress_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/compress"
)

var place = journal.Place{Aggregate: aggregate.ID{Type: "account", Value: "42"}, Number: 1}

func newGzip(t *testing.T, c compress.Config) journal.Encoding {
	t.Helper()
	e, err := compress.Gzip(c)
	require.NoError(t, err)
	return e
}

// sentence returns a compressible text of the given length.
func sentence(length int) []byte {
	return []byte(strings.Repeat(`{"name":"Ann","amount":100},`, length/28+1)[:length])
}

func noise(random *rand.Rand, length int) []byte {
	b := make([]byte, length)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func TestAPayloadComesBackAsItWas(t *testing.T) {
	t.Parallel()
	for _, level := range []int{0, gzip.HuffmanOnly, gzip.BestSpeed, gzip.BestCompression} {
		e := newGzip(t, compress.Config{Level: level, MinBytes: -1})
		random := rand.New(rand.NewPCG(1, 2))
		for range 30 {
			payload := append(sentence(random.IntN(5_000)), noise(random, random.IntN(100))...)
			kept := bytes.Clone(payload)
			encoded, applied, err := e.Encode(t.Context(), place, payload)
			require.NoError(t, err)
			require.Equal(t, kept, payload)
			if !applied {
				continue
			}
			require.Less(t, len(encoded), len(payload))
			again, _, err := e.Encode(t.Context(), place, payload)
			require.NoError(t, err)
			require.Equal(t, encoded, again)
			decoded, err := e.Decode(t.Context(), place, encoded)
			require.NoError(t, err)
			require.Equal(t, payload, decoded)
		}
	}
}

func TestWhatIsShortOrDoesNotShrinkIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		config  compress.Config
		payload []byte
		applied bool
	}{
		"below 1,024 bytes":       {compress.Config{}, sentence(1_023), false},
		"1,024 bytes":             {compress.Config{}, sentence(1_024), true},
		"below MinBytes":          {compress.Config{MinBytes: 200}, sentence(199), false},
		"MinBytes":                {compress.Config{MinBytes: 200}, sentence(200), true},
		"no minimum":              {compress.Config{MinBytes: -1}, sentence(100), true},
		"empty":                   {compress.Config{MinBytes: -1}, nil, false},
		"noise":                   {compress.Config{}, noise(random, 10_000), false},
		"longer than is read":     {compress.Config{MaxBytes: 5_000}, sentence(5_001), false},
		"just as long as is read": {compress.Config{MaxBytes: 5_000}, sentence(5_000), true},
	} {
		e := newGzip(t, c.config)
		encoded, applied, err := e.Encode(t.Context(), place, c.payload)
		require.NoError(t, err, name)
		require.Equal(t, c.applied, applied, name)
		if applied {
			decoded, err := e.Decode(t.Context(), place, encoded)
			require.NoError(t, err, name)
			assert.Equal(t, c.payload, decoded, name)
		}
	}
}

func TestABombIsDefused(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	w := gzip.NewWriter(&bomb)
	for range 17 {
		_, err := w.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.Less(t, bomb.Len(), 100<<10)

	_, err := newGzip(t, compress.Config{}).Decode(t.Context(), place, bomb.Bytes())
	require.ErrorIs(t, err, compress.ErrTooLong)

	plain, err := newGzip(t, compress.Config{MaxBytes: 17 << 20}).Decode(t.Context(), place, bomb.Bytes())
	require.NoError(t, err)
	assert.Equal(t, 17<<20, len(plain)) //nolint:testifylint // Len would print all of them
}

func TestDamageShows(t *testing.T) {
	t.Parallel()
	e := newGzip(t, compress.Config{})
	encoded, applied, err := e.Encode(t.Context(), place, sentence(3_000))
	require.NoError(t, err)
	require.True(t, applied)
	cut := func(n int) []byte { return encoded[:n] }
	for name, damaged := range map[string][]byte{
		"nothing": nil, "no gzip": []byte("no gzip at all"), "cut": cut(len(encoded) - 1), "half": cut(len(encoded) / 2),
		"more": append(bytes.Clone(encoded), 0), "twice": append(bytes.Clone(encoded), encoded...),
		"changed": append(cut(len(encoded) - 8)[:len(encoded)-8:len(encoded)-8], make([]byte, 8)...),
	} {
		_, err := e.Decode(t.Context(), place, damaged)
		assert.ErrorContains(t, err, "damaged", name)
	}
	_, err = e.Decode(t.Context(), place, encoded)
	assert.NoError(t, err, "what is read after damage is right again")
}

func TestManyUseOneEncoding(t *testing.T) {
	t.Parallel()
	e := newGzip(t, compress.Config{})
	var wait sync.WaitGroup
	for n := range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range 50 {
				payload := sentence(2_000 + n*100 + i)
				encoded, _, err := e.Encode(t.Context(), place, payload)
				assert.NoError(t, err)
				decoded, err := e.Decode(t.Context(), place, encoded)
				assert.NoError(t, err)
				assert.Equal(t, payload, decoded)
			}
		}()
	}
	wait.Wait()
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []compress.Config{{Level: 10}, {Level: -3}, {MaxBytes: -1}} {
		_, err := compress.Gzip(c)
		assert.ErrorAs(t, err, new(*compress.ConfigError), fmt.Sprint(c))
	}
}

func TestAPayloadOverAnItemsLimitFitsWhenItIsCompressed(t *testing.T) {
	t.Parallel()
	j := testjournal.New(t, testdb.Client(t), journal.Config{Layout: journal.Classic, Shards: 1, Encodings: []journal.Encoding{newGzip(t, compress.Config{})}})
	payload := sentence(2 << 20)

	receipt, err := j.Internal().Append(t.Context(), storage.Commit{
		Aggregate: place.Aggregate, Events: []storage.Event{{Payload: payload}}, Snapshot: &journal.Snapshot{Number: 1, Payload: payload},
	})

	require.NoError(t, err)
	assert.False(t, receipt.SnapshotLeftOut)
	head, err := j.Head(t.Context(), place.Aggregate)
	require.NoError(t, err)
	assert.Equal(t, payload, head.Snapshot.Payload)
	for r, err := range j.Events(t.Context(), place.Aggregate, 1, 1) {
		require.NoError(t, err)
		assert.Equal(t, payload, r.Payload)
	}
}

func FuzzDecode(f *testing.F) {
	e, err := compress.Gzip(compress.Config{MinBytes: -1, MaxBytes: 1 << 16})
	require.NoError(f, err)
	encoded, _, err := e.Encode(f.Context(), place, sentence(500))
	require.NoError(f, err)
	f.Add(encoded)
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, data []byte) {
		plain, err := e.Decode(t.Context(), place, data)
		if err == nil {
			assert.LessOrEqual(t, len(plain), 1<<16)
		}
	})
}

func BenchmarkGzip(b *testing.B) {
	e, err := compress.Gzip(compress.Config{})
	require.NoError(b, err)
	payload := sentence(4_000)
	encoded, _, err := e.Encode(b.Context(), place, payload)
	require.NoError(b, err)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = e.Encode(b.Context(), place, payload)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = e.Decode(b.Context(), place, encoded)
		}
	})
}
