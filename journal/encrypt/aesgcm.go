package encrypt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// Config configures [AESGCM]. Keys is required.
type Config struct {
	Keys KeyStore
	// CacheLifetime is how long a key is used after it was read, and so how long after
	// [KeyStore.Destroy] other processes can still decrypt. Default: 5 minutes; negative for no
	// cache, when each payload reads its key.
	CacheLifetime time.Duration
	// CacheKeys bounds the number of keys in memory, about 1 KB each. Default: 10,000.
	CacheKeys int
	// AllowLateKeys lets an aggregate that has events already get its first key, if the last event
	// is not encrypted. Set it if the journal has aggregates that were begun without encryption;
	// it costs one more read when such an aggregate gets its key. Otherwise an append to an
	// aggregate with events and no key fails with [ErrNoKey], as its key was probably lost, and a
	// second key would not read what the first one has encrypted. Default: false.
	AllowLateKeys bool
	// Now is the clock of the cache. Default: time.Now.
	Now func() time.Time
}

// Encryption encrypts payloads. Make one with [AESGCM]. It is safe for concurrent use.
type Encryption struct {
	keys     KeyStore
	cache    *cache
	lateKeys bool
}

// AESGCM returns an encryption with AES-256-GCM and a key for each aggregate. Its name in the store
// is "aes-gcm".
//
// Errors: [*ConfigError].
func AESGCM(c Config) (*Encryption, error) {
	if c.Keys == nil {
		return nil, &ConfigError{Field: "Keys", Reason: "is nil: make one with NewKeys"}
	}
	if c.CacheKeys < 0 {
		return nil, &ConfigError{Field: "CacheKeys", Reason: "is negative: for no cache give a negative CacheLifetime"}
	}
	if c.CacheLifetime == 0 {
		c.CacheLifetime = 5 * time.Minute
	}
	if c.CacheKeys == 0 {
		c.CacheKeys = 10_000
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	cache, err := newCache(c)
	if err != nil {
		return nil, err
	}
	return &Encryption{keys: c.Keys, cache: cache, lateKeys: c.AllowLateKeys}, nil
}

var _ journal.Encoding = (*Encryption)(nil)

// Name implements [journal.Encoding].
func (*Encryption) Name() string { return "aes-gcm" }

// Overhead implements [journal.Encoding].
func (*Encryption) Overhead() int { return overheadBytes }

// Encode encrypts. The first event of an aggregate gets a new key if there is none yet; for later
// ones see [Config.AllowLateKeys]. Errors: [journal.ErrKeyDestroyed], [ErrNoKey], those of the
// [KeyStore].
func (e *Encryption) Encode(ctx context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	read := e.keys.EnsureKey
	switch {
	case at.Number > 1 && e.lateKeys:
		read = e.lateKey
	case at.Number > 1:
		read = e.onlyKey
	}
	s, err := e.sealer(ctx, at.Aggregate, read)
	if err != nil {
		return nil, false, err
	}
	return s.seal(payload, about(at)), true, nil
}

// onlyKey returns the key of an aggregate that has events. It creates none.
func (e *Encryption) onlyKey(ctx context.Context, id aggregate.ID) ([]byte, error) {
	key, err := e.keys.Key(ctx, id)
	if errors.Is(err, ErrNoKey) {
		err = fmt.Errorf("%w; if its events are not encrypted yet, set encrypt.Config.AllowLateKeys", err)
	}
	return key, err
}

// lateKey returns the key of an aggregate that has events. It creates one if these are plain.
func (e *Encryption) lateKey(ctx context.Context, id aggregate.ID) ([]byte, error) {
	key, err := e.keys.Key(ctx, id)
	if !errors.Is(err, ErrNoKey) {
		return key, err
	}
	before, beforeErr := storage.EncodingBefore(ctx)
	switch {
	case beforeErr != nil:
		return nil, beforeErr
	case slices.Contains(strings.Split(before, ","), e.Name()):
		return nil, fmt.Errorf("%w; its last event is encrypted", err)
	}
	return e.keys.EnsureKey(ctx, id)
}

// Decode decrypts. Errors: [journal.ErrKeyDestroyed], [ErrNoKey], [ErrForged], those of the
// [KeyStore].
func (e *Encryption) Decode(ctx context.Context, at journal.Place, encoded []byte) ([]byte, error) {
	s, err := e.sealer(ctx, at.Aggregate, e.keys.Key)
	if err != nil {
		return nil, err
	}
	return s.unseal(encoded, about(at))
}

// Destroy destroys the key of an aggregate, see [KeyStore.Destroy], and forgets it in this process.
// After an error it may be destroyed or not: call it again.
func (e *Encryption) Destroy(ctx context.Context, id aggregate.ID) error {
	err := e.keys.Destroy(ctx, id)
	e.cache.forget(id)
	return err
}

// sealer returns the sealer of the aggregate's key, from the cache, or made from the key that read
// returns.
func (e *Encryption) sealer(
	ctx context.Context, id aggregate.ID, read func(context.Context, aggregate.ID) ([]byte, error),
) (*sealer, error) {
	cached, known, ticket := e.cache.get(id)
	if known {
		return cached.sealer, cached.err
	}
	key, err := read(ctx, id)
	if err != nil {
		if errors.Is(err, journal.ErrKeyDestroyed) {
			e.cache.keep(id, nil, err, ticket)
		}
		return nil, err
	}
	s, err := newSealer(key, ErrNoKey)
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", id, err)
	}
	e.cache.keep(id, s, nil, ticket)
	return s, nil
}

// about is what a payload is bound to. The lengths keep parts apart that read the same together.
func about(at journal.Place) []byte {
	b := make([]byte, 0, 64+len(at.Aggregate.Type)+len(at.Aggregate.Value)+len(at.EventType))
	b = append(b, "millrace payload"...)
	b = appendText(b, at.Aggregate.Type)
	b = appendText(b, at.Aggregate.Value)
	b = binary.BigEndian.AppendUint64(b, at.Number)
	b = appendText(b, at.EventType)
	if at.Snapshot {
		return append(b, 's')
	}
	return append(b, 'e')
}

func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...) //nolint:gosec // ids are short
}
