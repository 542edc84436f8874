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
	// CacheLifetime is how long a process uses a key after reading it. So it is also how long other
	// processes can still decrypt after [KeyStore.Destroy]. Default: 5 minutes. A negative value
	// turns the cache off: each payload then reads its key.
	CacheLifetime time.Duration
	// CacheKeys is the largest number of keys in memory, about 1 KB each. Default: 10,000.
	CacheKeys int
	// AllowLateKeys lets an aggregate that already has events get its first key, if its last event
	// is not encrypted. Set it if the journal has aggregates that were begun without encryption. It
	// costs one more read when such an aggregate gets its key. Default: false. An append to an
	// aggregate with events and no key then fails with [ErrNoKey]: its key was probably lost, and a
	// second key would not decrypt the earlier events.
	AllowLateKeys bool
	// Now is the clock of the cache. Default: time.Now.
	Now func() time.Time
}

// Encryption encrypts payloads. [AESGCM] creates one. It is safe for concurrent use.
type Encryption struct {
	keys     KeyStore
	cache    *cache
	lateKeys bool
}

// Open creates the table of keys if it is missing, and returns an encryption with these keys. It is
// [CreateTable], [NewKeys] and [AESGCM] in one call. Use NewKeys and AESGCM for a table that was
// deployed before, and for another [Config].
//
// Errors: those of CreateTable and NewKeys.
func Open(ctx context.Context, client journal.Client, wrapper Wrapper, config KeysConfig) (*Encryption, error) {
	keys, err := NewKeys(client, wrapper, config)
	if err != nil {
		return nil, err
	}
	if err := CreateTable(ctx, client, config); err != nil {
		return nil, err
	}
	return AESGCM(Config{Keys: keys})
}

// AESGCM returns an encryption with AES-256-GCM and one key for each aggregate. The name of the
// encoding is "aes-gcm".
//
// Errors: [*ConfigError].
func AESGCM(c Config) (*Encryption, error) {
	if c.Keys == nil {
		return nil, &ConfigError{Field: "Keys", Reason: "is nil: make one with NewKeys"}
	}
	if c.CacheKeys < 0 {
		return nil, &ConfigError{Field: "CacheKeys", Reason: "is negative: to turn the cache off, set a negative CacheLifetime"}
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

// Encode encrypts a payload. The first event of an aggregate gets a new key if there is none. For
// later events see [Config.AllowLateKeys].
//
// Errors: [journal.ErrKeyDestroyed], [ErrNoKey], and the errors of the [KeyStore]. If a key is
// missing, also those of a read of the aggregate: [journal.ErrConflict] or [*journal.DeletedError]
// if the aggregate has events although this is its first one.
func (e *Encryption) Encode(ctx context.Context, at journal.Place, payload []byte) ([]byte, bool, error) {
	read := e.onlyKey
	if e.lateKeys || at.Number == 1 && !at.Snapshot {
		read = e.newKey
	}
	s, err := e.sealer(ctx, at.Aggregate, read)
	if err != nil {
		return nil, false, err
	}
	return s.seal(payload, about(at)), true, nil
}

// onlyKey returns the key of an aggregate that has events. It does not create one.
func (e *Encryption) onlyKey(ctx context.Context, id aggregate.ID) ([]byte, error) {
	key, err := e.keys.Key(ctx, id)
	if errors.Is(err, ErrNoKey) {
		err = fmt.Errorf("%w; if its events are not encrypted yet, set encrypt.Config.AllowLateKeys", err)
	}
	return key, err
}

// newKey returns the key of an aggregate. If there is none, it reads the end of the aggregate,
// because the key may be lost. It creates a key if there is no event, or the last one is plain.
func (e *Encryption) newKey(ctx context.Context, id aggregate.ID) ([]byte, error) {
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

// Decode decrypts a payload.
//
// Errors: [journal.ErrKeyDestroyed], [ErrNoKey], [ErrForged], and the errors of the [KeyStore].
func (e *Encryption) Decode(ctx context.Context, at journal.Place, encoded []byte) ([]byte, error) {
	s, err := e.sealer(ctx, at.Aggregate, e.keys.Key)
	if err != nil {
		return nil, err
	}
	return s.unseal(encoded, about(at))
}

// Destroy destroys the key of an aggregate, see [KeyStore.Destroy], and removes it from the cache
// of this process. After an error the key may or may not be destroyed: call it again.
func (e *Encryption) Destroy(ctx context.Context, id aggregate.ID) error {
	err := e.keys.Destroy(ctx, id)
	e.cache.forget(id)
	return err
}

// sealer returns the sealer of the aggregate's key. It comes from the cache, or is made from the
// key that read returns.
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

// about returns the data to which a payload is bound. Lengths separate parts that would otherwise
// be ambiguous.
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
