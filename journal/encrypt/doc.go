// Package encrypt encrypts the payloads that a journal stores in DynamoDB. Each aggregate has a key
// of its own. After the key is destroyed, the payloads cannot be read any more, in any copy. So you
// do not have to edit the events of the journal, which must not change, or backups, exports and
// logs. This is called crypto-shredding. It serves the right to be forgotten.
//
//	secret, err := encrypt.Open(ctx, client, wrapper, encrypt.KeysConfig{}) // creates its table
//	j, err := journal.Open(ctx, client, journal.Config{Encodings: []journal.Encoding{secret}})
//	...
//	err = secret.Destroy(ctx, aggregate.ID{Type: "customer", Value: "42"})
//
// # What is encrypted
//
// The payloads of events and snapshots are encrypted with AES-256-GCM and a random nonce.
// Encryption adds 37 bytes to a payload. A payload is bound to its [journal.Place]: it does not
// decrypt after a change, with another event type, or in the place of another event. A program that
// can write to the tables could still replace it with a plain payload. To make readers refuse that,
// create the journal with [journal.Config.RequiredEncodings].
//
// Aggregate ids, event types, event ids, metadata, times and the lengths of payloads are not
// encrypted. Keep personal data out of them. For example, the id of a customer should be random,
// not an email address.
//
// # Destroyed keys
//
// Reading an event or a snapshot whose key was destroyed fails with [journal.ErrKeyDestroyed].
// Appending to the aggregate fails with the same error and writes nothing. So repository.Load,
// Execute and Publish return it. The version of the aggregate can still be read, with
// [journal.Journal.Raw]. Subscribers skip, log and count such events. A tombstone takes the place
// of the key, so the aggregate never gets another key. Use a new aggregate instead.
//
// Each process caches keys for [Config.CacheLifetime], 5 minutes by default. [Encryption.Destroy]
// removes the key from the cache of its own process immediately. Other processes can use it for
// that time. Events that they append meanwhile are written, and cannot be read afterwards.
//
// Destroying a key does not affect data that was decrypted before: read models, logs, the memory of
// processes. A repository with a cache (repository.Config.Cache) loads the state while it is
// cached; only its commits fail.
//
// Destroying a key does not affect backups of the table of keys either. With point-in-time recovery
// or a stream on the table, a key is gone only after these have expired. Keep such backups for a
// short time, and separate from the backups of the journal. If the table is lost, all encrypted
// payloads are lost. A payload contains the first 8 bytes of a hash of its key, so a key that is
// missing or was replaced is reported as [ErrNoKey].
//
// # Encrypting a journal in use
//
// Deploy [journal.ForReading] first, so that all processes can decrypt before the first one
// encrypts. Set [Config.AllowLateKeys], so that aggregates with plain events get a key. Their
// earlier events and snapshots stay plain, also in archives and after these are imported. So such a
// journal cannot require the encoding, and Destroy does not hide the plain payloads.
//
// # Keys
//
// A [KeyStore] stores one key for each aggregate. [Keys] is a KeyStore in a separate DynamoDB
// table. A [Wrapper] encrypts ("wraps") each key in it. [LocalWrapper] wraps with a key from the
// application's own secrets. AWS KMS wraps with a key that never leaves the service. This package
// does not import KMS, since a few lines are enough:
//
//	type kmsWrapper struct {
//		client *kms.Client
//		keyID  string
//	}
//
//	func (w kmsWrapper) Wrap(ctx context.Context, id aggregate.ID, key []byte) ([]byte, error) {
//		out, err := w.client.Encrypt(ctx, &kms.EncryptInput{
//			KeyId: &w.keyID, Plaintext: key,
//			EncryptionContext: map[string]string{"type": id.Type, "id": id.Value},
//		})
//		if err != nil {
//			return nil, err
//		}
//		return out.CiphertextBlob, nil
//	}
//
// Unwrap does the same with Decrypt. KMS rotates its keys automatically, and still unwraps what its
// earlier keys have wrapped.
//
// Reading payloads needs the table of keys and the wrapping key. A program with access to both can
// decrypt everything. Grant write access to the table of keys only to writers of the journal.
//
// # Cost
//
// The first event of an aggregate takes three more round trips, two read units, one write unit and
// one call of Wrap. One of the reads verifies that the aggregate has no events, because a lost
// key must not be replaced. After that, each process takes one round trip, one read unit and one
// call of Unwrap for each aggregate in each CacheLifetime. It takes more if more than
// [Config.CacheKeys] aggregates are in use.
package encrypt
