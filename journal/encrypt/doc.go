// Package encrypt encrypts stored payloads with a key of each aggregate's own. Destroy that key, and what it encrypted is
// gone for good, wherever copies of it lie: the journal's events need not be touched, which must not change, nor its
// backups, exports and logs. (This is called crypto-shredding; the right to be forgotten is what it is for.)
//
//	keys, err := encrypt.NewKeys(client, wrapper, encrypt.KeysConfig{}) // encrypt.CreateTable makes its table, once
//	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
//	j, err := journal.Open(ctx, client, journal.Config{Encodings: []journal.Encoding{secret}})
//	...
//	err = secret.Destroy(ctx, aggregate.ID{Type: "customer", Value: "42"})
//
// # What is encrypted
//
// The payloads of events and snapshots, with AES-256-GCM and a random nonce for each; that adds 29 bytes. A payload is
// bound to its [journal.Place]: moved to another event or aggregate it does not decrypt, nor when it was changed.
//
// Not encrypted are aggregate ids, event types, event ids, metadata, times and the lengths of payloads. Put nothing
// personal there: a customer's id should be a random one, not an e-mail address.
//
// # What a destroyed key means
//
// Reading an event or a snapshot that it encrypted fails with [journal.ErrKeyDestroyed], and so does appending to the
// aggregate: repository.Load and Execute and Publish return that. Nothing is written. The version of the aggregate can
// still be read, by [journal.Journal.Raw]. Subscribers pass over such events, log and count them. No new key is ever
// made for the aggregate, since a tombstone takes the key's place; begin another aggregate instead.
//
// Keys are cached in each process for [Config.CacheLifetime], 5 minutes by default. [Encryption.Destroy] forgets the key in its own
// process at once; others can use it for that long. An event that they append meanwhile is written, and can
// be read by nobody afterwards.
//
// Destroying a key does not reach what was decrypted before: read models, logs, the memory of processes. A repository with
// a cache (repository.Config.Cache) loads the state for as long as it has it in there; only its commits fail.
// Nor does it reach backups of the table of keys: with point-in-time recovery or a stream on it, keys
// are gone only when those have expired. Keep such backups short, apart from those of the journal. If the table is lost,
// so is everything that was encrypted.
//
// # Keys
//
// A [KeyStore] keeps one key for each aggregate. [Keys] is one in a DynamoDB table of its own, in which each key is wrapped
// (that is, encrypted) by a [Wrapper]. [LocalWrapper] does that with a key from the application's own secrets. AWS KMS
// does it with a key that never leaves it; this package does not import it, since a few lines are enough:
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
// with Unwrap the same by Decrypt. KMS rotates its keys by itself and still unwraps what former ones have wrapped.
// Whoever may read the table of keys and use the wrapping key reads everything; give writers of the journal those
// rights and nobody else.
//
// # Cost
//
// An aggregate's first event takes two round trips more, one read and one write unit, and one call of Wrap. After that
// each process takes one round trip, one read unit and one call of Unwrap for an aggregate in a CacheLifetime, unless
// there are more than [Config.CacheKeys] aggregates in use.
package encrypt
