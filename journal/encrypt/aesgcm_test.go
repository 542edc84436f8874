package encrypt_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
)

func TestAPayloadComesBackAsItWasAndIsSealedDifferentlyEachTime(t *testing.T) {
	t.Parallel()
	e := newEncryption(t, encrypt.Config{Keys: setup(t).keys, AllowLateKeys: true})
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		payload := make([]byte, random.IntN(2_000))
		for i := range payload {
			payload[i] = byte(random.Uint32())
		}
		kept := bytes.Clone(payload)
		place := journal.Place{Aggregate: customer(fmt.Sprint(random.IntN(5))), Number: random.Uint64(), Snapshot: random.IntN(2) == 0}
		encoded, applied, err := e.Encode(t.Context(), place, payload)
		require.NoError(t, err)
		require.True(t, applied)
		require.Equal(t, kept, payload)
		require.Len(t, encoded, len(payload)+e.Overhead())
		again, _, err := e.Encode(t.Context(), place, payload)
		require.NoError(t, err)
		require.NotEqual(t, encoded, again)

		decoded, err := e.Decode(t.Context(), place, encoded)
		require.NoError(t, err)
		require.Equal(t, payload, decoded)
	}
}

// "user" + "account-x" and "user-account" + "x" are the same text.
func TestAPayloadDecryptsInItsPlaceOnly(t *testing.T) {
	t.Parallel()
	// One key for all, so that only the place matters.
	e := newEncryption(t, encrypt.Config{Keys: fixed{}})
	place := at(aggregate.ID{Type: "user", Value: "account-x"}, 3)
	encoded, _, err := e.Encode(t.Context(), place, []byte("secret"))
	require.NoError(t, err)
	for _, other := range []journal.Place{
		at(aggregate.ID{Type: "user-account", Value: "x"}, 3), at(customer("account-x"), 3), at(place.Aggregate, 4),
		{Aggregate: place.Aggregate, Number: 3, Snapshot: true},
		{Aggregate: place.Aggregate, Number: 3, EventType: "Withdrawn"},
	} {
		_, err = e.Decode(t.Context(), other, encoded)
		assert.ErrorIs(t, err, encrypt.ErrForged, "%s", other)
	}
}

func TestAChangedPayloadDoesNotDecrypt(t *testing.T) {
	t.Parallel()
	e := newEncryption(t, encrypt.Config{Keys: setup(t).keys})
	encoded, _, err := e.Encode(t.Context(), at(customer("1"), 1), []byte("secret"))
	require.NoError(t, err)
	for i := range encoded {
		changed := bytes.Clone(encoded)
		changed[i] ^= 1
		_, err := e.Decode(t.Context(), at(customer("1"), 1), changed)
		if i >= 1 && i <= 8 { // the id of the key
			require.ErrorIs(t, err, encrypt.ErrNoKey, "byte %d", i)
		} else {
			require.ErrorIs(t, err, encrypt.ErrForged, "byte %d", i)
		}
		_, err = e.Decode(t.Context(), at(customer("1"), 1), encoded[:i])
		require.ErrorIs(t, err, encrypt.ErrForged, "cut at %d", i)
	}
}

func TestAnEncryptedPayloadWithoutAnyKeySaysSo(t *testing.T) {
	t.Parallel()
	s := setup(t)
	encoded, _, err := newEncryption(t, encrypt.Config{Keys: setup(t).keys}).Encode(t.Context(), at(customer("1"), 1), nil)
	require.NoError(t, err)
	_, err = newEncryption(t, encrypt.Config{Keys: s.keys}).Decode(t.Context(), at(customer("1"), 1), encoded)
	require.ErrorIs(t, err, encrypt.ErrNoKey)
	assert.ErrorContains(t, err, customer("1").String())
}

func TestALostKeyIsNoticedInsteadOfReplaced(t *testing.T) {
	t.Parallel()
	s := setup(t)
	encoded, _, err := newEncryption(t, encrypt.Config{Keys: s.keys}).Encode(t.Context(), at(customer("1"), 1), []byte("secret"))
	require.NoError(t, err)
	s.loseKey(t, customer("1"))

	_, _, err = newEncryption(t, encrypt.Config{Keys: s.keys}).Encode(t.Context(), at(customer("1"), 2), []byte("more"))
	require.ErrorIs(t, err, encrypt.ErrNoKey)
	require.ErrorContains(t, err, "AllowLateKeys")

	late := newEncryption(t, encrypt.Config{Keys: s.keys, AllowLateKeys: true})
	_, _, err = late.Encode(t.Context(), at(customer("1"), 2), []byte("more"))
	require.NoError(t, err)
	_, err = late.Decode(t.Context(), at(customer("1"), 1), encoded)
	require.ErrorIs(t, err, encrypt.ErrNoKey, "the second key does not pass for the first")
	assert.ErrorContains(t, err, fmt.Sprintf("%x", encoded[1:9]), "which names the key that is lost")
}

func TestALateKeyDoesNotReplaceOneThatWasLost(t *testing.T) {
	t.Parallel()
	s := setup(t)
	require.NoError(t, journal.Create(t.Context(), s.client, journal.Config{Layout: journal.Classic, Shards: 1}))
	open := func() *engine.Engine {
		e := newEncryption(t, encrypt.Config{Keys: s.keys, AllowLateKeys: true})
		j := testjournal.Open(t, s.client, journal.Config{Encodings: []journal.Encoding{e}})
		return j.Internal()
	}
	plain := testjournal.Open(t, s.client, journal.Config{})
	said := func(expected uint64) storage.Commit {
		return storage.Commit{Aggregate: customer("1"), Expected: expected, Events: []storage.Event{{Type: "said"}}}
	}
	testjournal.Append(t, plain, said(0))
	_, err := open().Append(t.Context(), said(1))
	require.NoError(t, err, "the event before is plain")
	s.loseKey(t, customer("1"))

	_, err = open().Append(t.Context(), said(2))
	require.ErrorIs(t, err, encrypt.ErrNoKey)
	assert.ErrorContains(t, err, "its last event is encrypted")
	version, err := plain.Version(t.Context(), customer("1"))
	require.NoError(t, err)
	assert.EqualValues(t, 2, version)
}

func TestADestroyedKeyIsGoneHereAtOnceAndInOtherProcessesWithTheCache(t *testing.T) {
	t.Parallel()
	s := setup(t)
	time := &clock{}
	here := newEncryption(t, encrypt.Config{Keys: s.keys, Now: time.now})
	other := newEncryption(t, encrypt.Config{Keys: s.keys, Now: time.now})
	place := at(customer("1"), 1)
	encoded, _, err := here.Encode(t.Context(), place, []byte("secret"))
	require.NoError(t, err)
	_, err = other.Decode(t.Context(), place, encoded)
	require.NoError(t, err)

	require.NoError(t, here.Destroy(t.Context(), customer("1")))
	require.NoError(t, here.Destroy(t.Context(), customer("1")), "again")

	requireDestroyed := func(e *encrypt.Encryption) {
		t.Helper()
		_, err := e.Decode(t.Context(), place, encoded)
		require.ErrorIs(t, err, journal.ErrKeyDestroyed)
		require.ErrorContains(t, err, customer("1").String())
		_, _, err = e.Encode(t.Context(), at(customer("1"), 2), []byte("more"))
		require.ErrorIs(t, err, journal.ErrKeyDestroyed, "nor is there ever a new one")
	}
	requireDestroyed(here)
	_, err = other.Decode(t.Context(), place, encoded)
	require.NoError(t, err, "for the lifetime of the cache, as documented")
	time.advance(lifetime)
	requireDestroyed(other)
	_, _, err = here.Encode(t.Context(), at(customer("2"), 1), nil)
	require.NoError(t, err, "others are as they were")
}

const lifetime = 5 * time.Minute // of the cache, by default

func TestAKeyIsReadOnceInALifetime(t *testing.T) {
	t.Parallel()
	s := setup(t)
	clock := &clock{}
	e := newEncryption(t, encrypt.Config{Keys: s.keys, Now: clock.now})
	encoded, _, err := e.Encode(t.Context(), at(customer("1"), 1), nil)
	require.NoError(t, err)
	for range 10 {
		_, err := e.Decode(t.Context(), at(customer("1"), 1), encoded)
		require.NoError(t, err)
	}
	assert.Zero(t, s.wrapper.unwraps.Load(), "the key was at hand since it was made")
	clock.advance(lifetime)
	for range 10 {
		_, err := e.Decode(t.Context(), at(customer("1"), 1), encoded)
		require.NoError(t, err)
	}
	assert.EqualValues(t, 1, s.wrapper.unwraps.Load())
}

func TestTheCacheForgetsWhatWasNotUsedForLongest(t *testing.T) {
	t.Parallel()
	s := setup(t)
	e := newEncryption(t, encrypt.Config{Keys: s.keys, CacheKeys: 2})
	use := func(id string) (read bool) {
		before := s.wrapper.unwraps.Load() + s.wrapper.wraps.Load()
		_, _, err := e.Encode(t.Context(), at(customer(id), 1), nil)
		require.NoError(t, err)
		return s.wrapper.unwraps.Load()+s.wrapper.wraps.Load() > before
	}
	assert.True(t, use("1"))
	assert.True(t, use("2"))
	assert.False(t, use("1"))
	assert.True(t, use("3"))
	assert.False(t, use("1"))
	assert.True(t, use("2"), "3 took its place")
}

func TestWithoutACacheEachPayloadReadsItsKey(t *testing.T) {
	t.Parallel()
	s := setup(t)
	e := newEncryption(t, encrypt.Config{Keys: s.keys, CacheLifetime: -1})
	for range 4 {
		_, _, err := e.Encode(t.Context(), at(customer("1"), 1), nil)
		require.NoError(t, err)
	}
	assert.EqualValues(t, 3, s.wrapper.unwraps.Load())
}

// slowKeys stops after it has read a key.
type slowKeys struct {
	encrypt.KeyStore
	read, goOn chan struct{}
}

func (s *slowKeys) Key(ctx context.Context, id aggregate.ID) ([]byte, error) {
	key, err := s.KeyStore.Key(ctx, id)
	s.read <- struct{}{}
	<-s.goOn
	return key, err
}

func TestAKeyThatIsDestroyedWhileItIsReadIsNotKept(t *testing.T) {
	t.Parallel()
	s := setup(t)
	encoded, _, err := newEncryption(t, encrypt.Config{Keys: s.keys}).Encode(t.Context(), at(customer("1"), 1), nil)
	require.NoError(t, err)
	slow := &slowKeys{KeyStore: s.keys, read: make(chan struct{}, 2), goOn: make(chan struct{})}
	e := newEncryption(t, encrypt.Config{Keys: slow})
	first := make(chan error)
	go func() {
		_, err := e.Decode(t.Context(), at(customer("1"), 1), encoded)
		first <- err
	}()
	<-slow.read
	require.NoError(t, e.Destroy(t.Context(), customer("1")))
	close(slow.goOn)
	require.NoError(t, <-first, "it was read before")

	_, err = e.Decode(t.Context(), at(customer("1"), 1), encoded)
	assert.ErrorIs(t, err, journal.ErrKeyDestroyed)
}

func TestManyUseOneEncryptionWhileKeysAreDestroyed(t *testing.T) {
	t.Parallel()
	s := setup(t)
	e := newEncryption(t, encrypt.Config{Keys: s.keys, CacheKeys: 3})
	var wait sync.WaitGroup
	for n := range 6 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range 40 {
				id := customer(fmt.Sprint((n + i) % 5))
				encoded, _, err := e.Encode(t.Context(), at(id, 1), []byte(id.Value))
				if err == nil {
					var decoded []byte
					if decoded, err = e.Decode(t.Context(), at(id, 1), encoded); err == nil {
						assert.Equal(t, id.Value, string(decoded))
					}
				}
				if err != nil {
					assert.ErrorIs(t, err, journal.ErrKeyDestroyed)
				}
				if n == 0 && i > 30 {
					assert.NoError(t, e.Destroy(t.Context(), id))
				}
			}
		}()
	}
	wait.Wait()
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	client := setup(t).client
	wrapper := newWrapper(t)
	for name, try := range map[string]func() error{
		"no keys": func() error { _, err := encrypt.AESGCM(encrypt.Config{}); return err },
		"cache": func() error {
			_, err := encrypt.AESGCM(encrypt.Config{Keys: &encrypt.Keys{}, CacheKeys: -1})
			return err
		},
		"no client":    func() error { _, err := encrypt.NewKeys(nil, wrapper, encrypt.KeysConfig{}); return err },
		"no wrapper":   func() error { _, err := encrypt.NewKeys(client, nil, encrypt.KeysConfig{}); return err },
		"table":        func() error { return encrypt.CreateTable(t.Context(), client, encrypt.KeysConfig{Table: "no spaces"}) },
		"wrapping key": func() error { _, err := encrypt.LocalWrapper([]byte("short")); return err },
	} {
		assert.ErrorAs(t, try(), new(*encrypt.ConfigError), name)
	}
}

// brokenWrapper returns keys of the wrong length.
type brokenWrapper struct{ encrypt.Wrapper }

func (brokenWrapper) Unwrap(context.Context, aggregate.ID, []byte) ([]byte, error) {
	return []byte("short"), nil
}

func TestAWrapperThatGivesNoKeyOf32BytesIsFoundOut(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, err := s.keys.EnsureKey(t.Context(), customer("1"))
	require.NoError(t, err)
	e := newEncryption(t, encrypt.Config{Keys: newKeys(t, s.client, brokenWrapper{newWrapper(t)})})
	_, _, err = e.Encode(t.Context(), at(customer("1"), 1), nil)
	var config *encrypt.ConfigError
	assert.ErrorAs(t, err, &config)
}

func BenchmarkAESGCM(b *testing.B) {
	e := newEncryption(b, encrypt.Config{Keys: fixed{}})
	payload := make([]byte, 1_000)
	encoded, _, err := e.Encode(b.Context(), at(customer("1"), 1), payload)
	require.NoError(b, err)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = e.Encode(b.Context(), at(customer("1"), 1), payload)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = e.Decode(b.Context(), at(customer("1"), 1), encoded)
		}
	})
}

// fixed returns the same key for every aggregate.
type fixed struct{ encrypt.KeyStore }

func (f fixed) Key(ctx context.Context, id aggregate.ID) ([]byte, error) { return f.EnsureKey(ctx, id) }

func (fixed) EnsureKey(context.Context, aggregate.ID) ([]byte, error) {
	return make([]byte, encrypt.KeyBytes), nil
}
