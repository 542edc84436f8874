package encrypt

import (
	"context"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
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
	// Now is the clock of the cache. Default: time.Now.
	Now func() time.Time
}

// Encryption encrypts payloads. Make one with [AESGCM]. It is safe for concurrent use.
type Encryption struct {
	keys  KeyStore
	cache *cache
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
	return &Encryption{keys: c.Keys, cache: cache}, nil
}

var _ journal.Encoding = (*Encryption)(nil)

// Name implements [journal.Encoding].
func (*Encryption) Name() string { return "aes-gcm" }

// Overhead implements [journal.Encoding].
func (*Encryption) Overhead() int { return overheadBytes }

// Encode encrypts, with a new key if the aggregate has none. Errors: [journal.ErrKeyDestroyed],
// those of the [KeyStore].
func (e *Encryption) Encode(ctx context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	aead, err := e.aead(ctx, at.Aggregate, e.keys.EnsureKey)
	if err != nil {
		return nil, false, err
	}
	return seal(aead, payload, about(at)), true, nil
}

// Decode decrypts. Errors: [journal.ErrKeyDestroyed], [ErrNoKey], [ErrForged], those of the
// [KeyStore].
func (e *Encryption) Decode(ctx context.Context, at journal.Place, encoded []byte) ([]byte, error) {
	aead, err := e.aead(ctx, at.Aggregate, e.keys.Key)
	if err != nil {
		return nil, err
	}
	return unseal(aead, encoded, about(at))
}

// Destroy destroys the key of an aggregate, see [KeyStore.Destroy], and forgets it in this process.
// After an error it may be destroyed or not: call it again.
func (e *Encryption) Destroy(ctx context.Context, id aggregate.ID) error {
	err := e.keys.Destroy(ctx, id)
	e.cache.forget(id)
	return err
}

func (e *Encryption) aead(
	ctx context.Context, id aggregate.ID, read func(context.Context, aggregate.ID) ([]byte, error),
) (cipher.AEAD, error) {
	cached, known, ticket := e.cache.get(id)
	if known {
		return cached.aead, cached.err
	}
	key, err := read(ctx, id)
	if err != nil {
		if errors.Is(err, journal.ErrKeyDestroyed) {
			e.cache.keep(id, nil, err, ticket)
		}
		return nil, err
	}
	aead, err := newAEAD(key)
	if err != nil {
		return nil, fmt.Errorf("key of %s: %w", id, err)
	}
	e.cache.keep(id, aead, nil, ticket)
	return aead, nil
}

// about is what a payload is bound to. The lengths keep parts apart that read the same together.
func about(at journal.Place) []byte {
	b := make([]byte, 0, 64+len(at.Aggregate.Type)+len(at.Aggregate.Value))
	b = append(b, "millrace payload"...)
	b = appendText(b, at.Aggregate.Type)
	b = appendText(b, at.Aggregate.Value)
	b = binary.BigEndian.AppendUint64(b, at.Number)
	if at.Snapshot {
		return append(b, 's')
	}
	return append(b, 'e')
}

func appendText(b []byte, text string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...) //nolint:gosec // ids are short
}
