// Package encrypt encrypts stored payloads with a separate key for each aggregate. When that key is
// destroyed, the payloads cannot be read any more, wherever copies of them are. So neither the
// events of the journal, which must not change, nor backups, exports and logs have to be edited.
// (This is called crypto-shredding; it serves the right to be forgotten.)
//
//	keys, err := encrypt.NewKeys(client, wrapper, encrypt.KeysConfig{}) // encrypt.CreateTable makes its table, once
//	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
//	j, err := journal.Open(ctx, client, journal.Config{Encodings: []journal.Encoding{secret}})
//	...
//	err = secret.Destroy(ctx, aggregate.ID{Type: "customer", Value: "42"})
//
// # What is encrypted
//
// The payloads of events and snapshots are encrypted with AES-256-GCM and a random nonce for each,
// which adds 37 bytes. A payload is bound to its [journal.Place]: it does not decrypt if it was
// changed, given another event type, or moved to another event or aggregate. A program that can
// write to the tables could still replace it with a plain one: create the journal with
// [journal.Config.RequiredEncodings], and readers refuse that.
//
// Aggregate ids, event types, event ids, metadata, times and the lengths of payloads are not
// encrypted. Keep personal data out of them: a customer's id should be random, not an e-mail
// address.
//
// # What a destroyed key means
//
// Reading an event or a snapshot that it encrypted fails with [journal.ErrKeyDestroyed], and so
// does appending to the aggregate: repository.Load and Execute and Publish return that. Nothing is
// written. The version of the aggregate can still be read, by [journal.Journal.Raw]. Subscribers
// pass over such events, log and count them. No new key is ever made for the aggregate, since a
// tombstone takes the key's place; begin another aggregate instead.
//
// Each process caches keys for [Config.CacheLifetime], 5 minutes by default. [Encryption.Destroy]
// removes the key from the cache of its own process at once; other processes can use it for that
// long. Events that they append in that time are written, and cannot be read afterwards.
//
// Destroying a key does not affect data that was decrypted before: read models, logs, the memory of
// processes. A repository with a cache (repository.Config.Cache) loads the state as long as it is
// cached; only its commits fail. Nor does it affect backups of the table of keys: with
// point-in-time recovery or a stream on it, keys are gone only when these have expired. Keep such
// backups for a short time, and separate from those of the journal. If the table is lost, so is
// everything that was encrypted. A payload carries the first 8 bytes of a hash of its key, so a key
// that is missing or was replaced is reported as [ErrNoKey].
//
// # Encrypting a journal in use
//
// Roll out [journal.ForReading] first, so that all processes can decrypt before one encrypts. Set
// [Config.AllowLateKeys], so that aggregates with plain events get a key. Their former events and
// snapshots stay plain, also in archives and when these are imported. So such a journal cannot
// require the encoding, and Destroy does not hide what is plain.
//
// # Keys
//
// A [KeyStore] keeps one key for each aggregate. [Keys] is one in a DynamoDB table of its own, in
// which each key is wrapped (that is, encrypted) by a [Wrapper]. [LocalWrapper] does that with a
// key from the application's own secrets. AWS KMS does it with a key that never leaves it; this
// package does not import it, since a few lines are enough:
//
//	type kmsWrapper struct {
//		client *kms.Client
//		keyID  string
//	}
//
//	func (w kmsWrapper) Wrap(ctx context.Context, id aggregate.ID, key []byte) ([]byte, error) {
//		out, err := w.client.Encrypt(ctx, &kms.EncryptInput{
//			KeyId: &w.keyID, Plaintext: key, EncryptionContext: map[string]string{"type": id.Type, "id": id.Value},
//		})
//		if err != nil {
//			return nil, err
//		}
//		return out.CiphertextBlob, nil
//	}
//
// with Unwrap the same by Decrypt. KMS rotates its keys by itself and still unwraps what former
// ones have wrapped. Reading payloads takes the table of keys and the wrapping
// key. Anyone with access to both can decrypt everything. Grant it only to writers of the journal.
//
// # Cost
//
// An aggregate's first event takes two round trips more, one read and one write unit, and one call
// of Wrap. After that each process takes one round trip, one read unit and one call of Unwrap for
// an aggregate in a CacheLifetime, unless there are more than [Config.CacheKeys] aggregates in use.
package encrypt
