package encrypt

import (
	"context"
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
	// AllowLateKeys lets an aggregate that has events already get its first key. Set it if the
	// journal has aggregates that were begun without encryption. Otherwise an append to such an
	// aggregate fails with [ErrNoKey]: an aggregate with events and no key has probably lost it,
	// and a second key would not read what the first one has encrypted. Default: false.
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
	if at.Number > 1 && !e.lateKeys {
		read = e.keys.Key
	}
	s, err := e.sealer(ctx, at.Aggregate, read)
	switch {
	case err == nil:
		return s.seal(payload, about(at)), true, nil
	case errors.Is(err, ErrNoKey):
		return nil, false, fmt.Errorf("%w; if its events are not encrypted yet, set encrypt.Config.AllowLateKeys", err)
	default:
		return nil, false, err
	}
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
